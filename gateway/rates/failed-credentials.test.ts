import { expect, test } from "vitest";
import { limitFailedCredentials } from "./failed-credentials.ts";

test("of too many valid access tokens, those that were last used longest ago are forgotten", () => {
  const limit = limitFailedCredentials(() => "192.0.2.1", { clock: () => 0 });
  const request = {} as never;
  const token = (i: number) => ({ authorization: `Bearer t${i}`, apiKey: undefined });
  for (let i = 0; i <= 10_000; i++) {
    limit.succeed(token(i));
    limit.succeed(token(0));
  }
  limit.fail(request, token(-1));
  for (let i = 0; i < 50; i++) limit.begin(request, token(-1));
  const isKnown = (i: number) => {
    try {
      limit.begin(request, token(i));
      return true;
    } catch {
      return false;
    }
  };
  expect([-1, 0, 1, 5001, 10_000].map(isKnown)).toEqual([false, true, false, true, true]);
});
