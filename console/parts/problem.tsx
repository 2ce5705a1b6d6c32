/** An error in the petstore's own words: its code, and what to do. */
import type { ErrorCode, PetstoreError } from "@petstore/client";

/** Texts where there is no answer, or it speaks of what people don't see. */
const ownWords: Partial<Record<ErrorCode, string>> = {
  UNREACHABLE:
    "No answer came. Is the petstore running? What was sent may have been done: look before you send it again.",
  ETAG_MISMATCH: "Somebody changed it meanwhile. Look at it in the list, and begin again.",
};

export const wordsOf = ({ code, message }: PetstoreError): string => ownWords[code] ?? message;

export interface ProblemProps {
  readonly error: PetstoreError;
  /** An action that may help. */
  readonly act?: { readonly label: string; readonly onClick: () => void };
}

export function Problem({ error, act }: ProblemProps) {
  return (
    <div class="problem" role="alert">
      <p>
        <code class="reason">{error.code}</code> {wordsOf(error)}
      </p>
      {error.requestId && <p class="quiet">Request {error.requestId}</p>}
      {act && (
        <button type="button" onClick={act.onClick}>
          {act.label}
        </button>
      )}
    </div>
  );
}
