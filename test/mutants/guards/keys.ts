import type { Guarded } from "../mutant.ts";

const transitions: Guarded = {
  file: "services/records/key-transitions.ts",
  mutants: [
    {
      guard: "a key is claimed only if it is absent",
      find: "doc ? keep(doc) : put(claimed, claimed)",
      put: "put(claimed, claimed)",
    },
    {
      guard: "a key names a fresh record only if it still names the one of which nothing came",
      find: "doc?.recordId === former ?",
      put: "doc ?",
    },
    {
      guard: "a key that names a fresh record begins its time anew",
      find: "recordId: id, hour }",
      put: "recordId: id }",
    },
    {
      guard: "a key is renewed only if it still names the record",
      find: "doc?.recordId === recordId ?",
      put: "doc ?",
    },
  ],
};

const creating: Guarded = {
  file: "services/records/idempotency-keys.ts",
  mutants: [
    {
      guard: "a key belongs to its caller",
      find: "[call.caller, rpc, requestId]",
      put: "[rpc, requestId]",
      by: "tests",
    },
    {
      guard: "a key belongs to one RPC",
      find: "[call.caller, rpc, requestId]",
      put: "[call.caller, requestId]",
      by: "tests",
    },
    {
      guard: "all attempts under a key have one tag",
      find: "tagOf(_id + fingerprint)",
      put: "tagOf(String(random()))",
    },
    {
      guard: "attempts without a key have each a tag of its own",
      find: "tagOf(String(random()))",
      put: 'tagOf("")',
      by: "tests",
    },
    {
      guard: "an expired key stands for nothing any more",
      find: "if (key && isExpired(key)) {",
      put: "if (false) {",
    },
    {
      guard: "only an expired key gives way to a new claim",
      find: "await keys.remove(_id, isExpired, call);",
      put: "await keys.remove(_id, () => true, call);",
    },
    {
      guard: "an expired key that a read has missed stands for nothing either",
      find: "if (isExpired(key)) continue;",
      put: "",
    },
    {
      guard: "an attempt goes on with what is claimed, not with what it would claim",
      find: "key = await keys.update(_id, claim({ _id, recordId, fingerprint, hour: validity.period() }), call);",
      put: `key = { _id, recordId, fingerprint, hour: validity.period() };
          await keys.update(_id, claim(key), call);`,
    },
    {
      guard: "a key answers one body",
      find: "if (key.fingerprint !== fingerprint) throw reused();",
      put: "",
    },
    {
      guard: "an attempt looks at the record before it makes one",
      find: "const doc = await stored(id);",
      put: "const doc = await (undefined as ReturnType<typeof stored> | undefined);",
    },
    {
      guard: "a key does not expire while its record is being made",
      find: "if (!doc && isLastHour(key) && !(await keys.update(_id, renew(id, validity.period()), call))) continue;",
      put: "",
    },
    {
      guard: "a key whose record is written is not renewed",
      find: "if (!doc && isLastHour(key) &&",
      put: "if (isLastHour(key) &&",
    },
    {
      guard: "a key is renewed in its last hour alone",
      find: "if (!doc && isLastHour(key) &&",
      put: "if (!doc &&",
    },
    {
      guard: "a key that could not be renewed is read again",
      find: "!(await keys.update(_id, renew(id, validity.period()), call))) continue;",
      put: "!(await keys.update(_id, renew(id, validity.period()), call))) isFirst = false;",
    },
    {
      guard: "a call without a key takes a few ids at most",
      find: "taken < MAX_IDS",
      put: "taken < 100",
      by: "tests",
    },
    {
      guard: "a call under a key takes a few ids at most",
      find: "round < MAX_ROUNDS && taken <= MAX_IDS",
      put: "round < MAX_ROUNDS",
      by: "tests",
    },
    {
      guard: "without a key a fresh id is above what is known of others",
      find: "await nextId(call, above)",
      put: "await nextId(call)",
      by: "tests",
    },
    {
      guard: "without a key the first id is above what is known of others",
      find: "let { above } = creation;",
      put: "let above: number | undefined;",
      by: "tests",
    },
    {
      guard: "under a key the first id is above what is known of others",
      find: "await nextId(call, creation.above)",
      put: "await nextId(call)",
      by: "tests",
    },
    {
      guard: "under a key a fresh id is above what is known of others",
      find: "await nextId(call, resolved.above)",
      put: "await nextId(call)",
      by: "tests",
    },
    {
      guard: "a key is kept for longer than it is answered from",
      find: "{ ageMs: ageMs + periodMs, periodMs }",
      put: "{ ageMs, periodMs }",
    },
    {
      guard: "the worker removes no key that is young again",
      find: "({ hour }) => expiry.isExpired(hour), call",
      put: "() => true, call",
    },
  ],
};

const retention: Guarded = {
  file: "services/records/retention.ts",
  mutants: [
    {
      guard: "tombstones are kept for longer than keys",
      find: "tombstones: { ageMs: 7 * DAY_MS",
      put: "tombstones: { ageMs: HOUR_MS",
    },
  ],
};

export const keys: readonly Guarded[] = [transitions, creating, retention];
