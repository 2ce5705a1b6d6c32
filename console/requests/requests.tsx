/** The page's calls, and how to make the same ones with other tools: for people who learn the API. */
import { toJson } from "@bufbuild/protobuf";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { Chip } from "../parts/words.tsx";
import { baseUrl } from "../petstore.ts";
import { credential } from "../session.ts";
import { type Form, formsOf } from "./forms.ts";
import { answerText, type Exact, httpAnswer, httpError, operationOf, reasonOf } from "./http.ts";
import { type Call, calls } from "./log.ts";

export function Requests() {
  const chosen = useSignal<number | undefined>(undefined);
  const all = calls.value;
  const call = all.find(({ number }) => number === chosen.value) ?? all[0];
  return (
    <>
      <header class="head">
        <div>
          <h1 tabIndex={-1}>Requests</h1>
          <p class="quiet">
            Everything this console did, and how you do it yourself. Every operation: <a href="docs">the reference</a>.
          </p>
        </div>
      </header>
      {call ? (
        <div class="requests">
          <ol aria-label="Requests, the latest first">
            {all.map((each) => (
              <li key={each.number}>
                <button
                  type="button"
                  class="plain asked"
                  aria-pressed={each === call}
                  onClick={() => {
                    chosen.value = each.number;
                  }}
                >
                  <span>{each.method.name}</span>
                  <Chip word={outcomeOf(each)} />
                </button>
              </li>
            ))}
          </ol>
          <Details key={call.number} call={call} />
        </div>
      ) : (
        <div class="empty">
          <p>Nothing was asked of the petstore yet.</p>
        </div>
      )}
    </>
  );
}

function outcomeOf({ end }: Call): string {
  if (!end) return "under way";
  return "error" in end ? "failed" : "done";
}

function Details({ call }: { readonly call: Call }) {
  const { method, request, startedAt, end } = call;
  const forms = formsOf(method, request, { baseUrl, isAsking: credential.value !== "" });
  return (
    <section class="details" aria-label={`${method.name} at ${startedAt.toLocaleTimeString()}`}>
      <h2>{method.name}</h2>
      <p class="quiet">
        {startedAt.toLocaleTimeString()}
        {end && `, ${end.ms} ms`}
        {end?.header.get("x-request-id") && `, request ${end.header.get("x-request-id")}`}
      </p>
      <Forms forms={forms} />
      {(request as { requestId?: string }).requestId && (
        <p class="quiet">
          Its key answers once: for a day the answer stays the same. Take another key to create again.
        </p>
      )}
      <h3>The answer</h3>
      <Text label="The answer" text={answerOf(call)} />
    </section>
  );
}

/** As the HTTP API gives it where it has the operation, else as Connect does. */
function answerOf({ method, request, end }: Call): string {
  if (!end) return "…";
  if ("error" in end) return answerText(httpError(reasonOf(end.error), end.error.rawMessage));
  const operation = operationOf(method, request);
  if (operation) return answerText(httpAnswer(operation, method, end.answer));
  return answerText({ status: 200, headers: [], body: toJson(method.output, end.answer) as Exact });
}

/** Tabs, as the ARIA Authoring Practices Guide has them. */
function Forms({ forms }: { readonly forms: readonly Form[] }) {
  const chosen = useSignal(0);
  const list = useRef<HTMLDivElement>(null);
  const form = forms[chosen.value] ?? forms[0];
  const choose = (index: number) => {
    chosen.value = (index + forms.length) % forms.length;
    list.current?.querySelectorAll("button")[chosen.value]?.focus();
  };
  const keys: Readonly<Record<string, () => void>> = {
    ArrowRight: () => choose(chosen.value + 1),
    ArrowLeft: () => choose(chosen.value - 1),
    Home: () => choose(0),
    End: () => choose(forms.length - 1),
  };
  return (
    <>
      <div
        ref={list}
        class="tabs"
        role="tablist"
        aria-label="The same request by"
        onKeyDown={(event) => {
          const act = keys[event.key];
          if (!act) return;
          event.preventDefault();
          act();
        }}
      >
        {forms.map(({ name }, index) => (
          <button
            key={name}
            type="button"
            role="tab"
            id={`tab-${name}`}
            aria-selected={index === chosen.value}
            aria-controls="form"
            tabIndex={index === chosen.value ? 0 : -1}
            onClick={() => choose(index)}
          >
            {name}
          </button>
        ))}
      </div>
      {form && (
        <div role="tabpanel" id="form" aria-labelledby={`tab-${form.name}`}>
          <Text label={form.name} text={form.text} />
          {form.hint && <p class="quiet">{form.hint}</p>}
        </div>
      )}
    </>
  );
}

function Text({ label, text }: { readonly label: string; readonly text: string }) {
  const isCopied = useSignal(false);
  useEffect(() => {
    isCopied.value = false;
  }, [text]);
  const copy = async () => {
    await navigator.clipboard.writeText(text);
    isCopied.value = true;
  };
  return (
    <div class="text">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what can be scrolled has to be reached by the keyboard */}
      <section class="scroll" tabIndex={0} aria-label={label}>
        <pre>
          <code>{text}</code>
        </pre>
      </section>
      {/* Pages that came by plain HTTP from another machine have no clipboard. */}
      {navigator.clipboard && (
        <button type="button" class="copy" onClick={() => void copy()}>
          {isCopied.value ? "Copied" : "Copy"}
          <span class="unseen"> {label}</span>
        </button>
      )}
    </div>
  );
}
