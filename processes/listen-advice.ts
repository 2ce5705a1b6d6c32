/** Advice for a process that can't listen, in terms of its settings. */
import { hostAndPort } from "@petstore/rpc/http/address";
import type { ListenAdvice } from "@petstore/rpc/http/listen";

export const listenAdvice: ListenAdvice = (code, host, port) =>
  new Map([
    ["EADDRINUSE", `port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080.`],
    ["ENOTSUP", "this system does not share a port among processes: leave the gateway out of REPLICAS."],
    ["EINVAL", "LISTEN_FDS=1 says that descriptor 3 is a socket to listen on, and it is none: leave it out."],
    ["EACCES", `port ${port} needs privileges that this user has not: choose another with PORT or PORT_BASE.`],
    ["EADDRNOTAVAIL", `HOST=${host} is no address of this machine: use HOST=127.0.0.1 or one that it has.`],
    ["ENOTFOUND", `HOST=${host} is no name that this machine can find: use HOST=127.0.0.1 or an IP address.`],
  ]).get(code);

/** The same for the admin port. */
export const adminListenAdvice: ListenAdvice = (code, host, port) =>
  new Map([
    [
      "EADDRINUSE",
      `port ${port} is taken, perhaps by another petstore: end it, or move this one with PORT_BASE=9080, or its admin port ` +
        "alone with ADMIN_PORT (0 takes one that is free, off none).",
    ],
    ["EACCES", `port ${port} needs privileges that this user has not: choose another with ADMIN_PORT.`],
    ["EADDRNOTAVAIL", `ADMIN_HOST=${host} is no address of this machine: use 127.0.0.1 or one that it has.`],
    ["ENOTFOUND", `ADMIN_HOST=${host} is no name that this machine can find: use 127.0.0.1 or an IP address.`],
  ]).get(code);

/** What the launcher says of a port that it can't bind. */
export const listenProblem = (code: string, host: string, port: number): string =>
  `Can't listen on ${hostAndPort(host, port)}: ${listenAdvice(code, host, port) ?? code}`;
