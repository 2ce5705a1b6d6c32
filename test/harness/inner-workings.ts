/** What no answer may tell: a stack, a path of the machine, the text of a driver, a class of errors, an address of a process. */
export const innerWorkings: readonly RegExp[] = [
  /\bat [^",;\n]+:\d+:\d+|node_modules|node:|\.[jt]s\b|\/(home|work|tmp|usr|srv)\//,
  /sqlite|mongo|bson|fastify|undici|connectrpc|ECONN|FST_|ERR_|E\d{5}/i,
  /\b\w+Error\b|127\.0\.0\.1|undefined|\[object /,
];
