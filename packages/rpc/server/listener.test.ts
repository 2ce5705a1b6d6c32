import type { IncomingMessage, ServerResponse } from "node:http";
import { expect, test } from "vitest";
import { errors } from "../../../processes/errors.ts";
import { createListener, type ListenerOptions } from "./listener.ts";

test("whatever fails before there is an answer ends the request, and not the process", () => {
  const logged: object[] = [];
  let isDestroyed = false;
  const failure = new Error("nobody thought of it");
  const options = {
    dispatcher: { errors, asksCallers: false },
    log: { debug: (line: object) => logged.push(line) },
    links: {
      serve() {
        throw failure;
      },
    },
  };
  const response = { destroy: () => (isDestroyed = true) } as unknown as ServerResponse;
  const listener = createListener([], options as unknown as ListenerOptions);
  expect(listener({ url: "/a.B/C?message=private" } as IncomingMessage, response)).toBeUndefined();
  expect([isDestroyed, logged]).toEqual([true, [{ err: failure, path: "/a.B/C" }]]);
});
