import fc from "fast-check";
import { expect, test } from "vitest";
import { frame } from "../fixtures/frames.ts";
import { countDataBytes } from "./data-bytes.ts";

test("the payloads of answers count, wherever what is sent is cut", () => {
  const frames = fc.array(fc.record({ type: fc.integer({ min: 0, max: 10 }), size: fc.integer({ min: 0, max: 300 }) }));
  const cuts = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1 });
  fc.assert(
    fc.property(frames, cuts, (all, sizes) => {
      const bytes = Buffer.concat(all.map(({ type, size }) => frame({ type, stream: 1, payload: Buffer.alloc(size) })));
      const count = countDataBytes();
      let counted = 0;
      for (let at = 0, i = 0; at < bytes.length; at += sizes[i++ % sizes.length] as number)
        counted += count(bytes.subarray(at, at + (sizes[i % sizes.length] as number)));
      const answers = all.filter(({ type }) => [0, 1, 9].includes(type));
      expect(counted).toBe(answers.reduce((sum, { size }) => sum + size, 0));
    }),
  );
});
