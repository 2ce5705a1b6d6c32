import { describe, expect, test } from "vitest";
import { openFilesLimit, withinOpenFiles } from "./open-files.ts";

const limits = { MAX_CONNECTIONS: 1000, MAX_CONNECTIONS_PER_ADDRESS: 500, MAX_STREAMS: 1000 };

describe("the limits of sockets", () => {
  test.each([2256, 20_000, Number.POSITIVE_INFINITY])("stay as they are where %d files may be open", (openFiles) => {
    expect(withinOpenFiles(limits, openFiles)).toEqual(limits);
  });

  test("are lowered in proportion where fewer may be open", () => {
    expect(withinOpenFiles(limits, 256)).toEqual({
      MAX_CONNECTIONS: 96,
      MAX_CONNECTIONS_PER_ADDRESS: 48,
      MAX_STREAMS: 96,
      warning:
        "This process may have 256 files open (ulimit -n), too few for MAX_CONNECTIONS=1000 and MAX_STREAMS=1000: it takes " +
        "96 connections and 96 streams. For more, raise it to 2256 (`ulimit -n 2256`, or LimitNOFILE in a unit of systemd), " +
        "or lower these settings.",
    });
    const uneven = { MAX_CONNECTIONS: 300, MAX_CONNECTIONS_PER_ADDRESS: 1, MAX_STREAMS: 100 };
    expect(withinOpenFiles(uneven, 264)).toMatchObject({
      MAX_CONNECTIONS: 148,
      MAX_CONNECTIONS_PER_ADDRESS: 1,
      MAX_STREAMS: 49,
    });
  });

  test("once lowered, fit", () => {
    for (let openFiles = 90; openFiles < 2300; openFiles++) {
      const { warning: _, ...lowered } = withinOpenFiles(limits, openFiles);
      expect(withinOpenFiles(lowered, openFiles)).toEqual(lowered);
      expect(lowered.MAX_CONNECTIONS + lowered.MAX_STREAMS).toBeLessThanOrEqual(openFiles - 64);
    }
  });

  test("are refused in one line where next to nobody could be served", () => {
    expect(() => withinOpenFiles(limits, 80)).toThrow(
      /^This process may have 80 files open \(ulimit -n\), too few for MAX_CONNECTIONS=1000 and MAX_STREAMS=1000: raise it to 2256 .*\.$/,
    );
  });
});

test("the limit of this process is known", () => {
  expect(openFilesLimit()).toBeGreaterThan(0);
});
