/** What no answer may reveal: a stack, a path of the machine, a driver's message, a class of errors, a process's address. */
export const innerWorkings: readonly RegExp[] = [
  /\bat [^",;\n]+:\d+:\d+|node_modules|node:|\.[jt]s\b|\/(home|work|tmp|usr|srv)\//,
  /sqlite|mongo|bson|fastify|undici|connectrpc|ECONN|FST_|ERR_|\bE\d{5}\b/i,
  /\b\w+Error\b|127\.0\.0\.1|undefined|\[object /,
];
