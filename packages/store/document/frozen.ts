/** Freezes the document and all that it holds, so that several callers can share it. */
export function frozen<T extends object>(doc: T): T {
  Object.freeze(doc);
  for (const member of Object.values(doc)) if (typeof member === "object" && member !== null) frozen(member);
  return doc;
}
