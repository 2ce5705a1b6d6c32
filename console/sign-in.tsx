/** Asks for an API key or a token, if the petstore requires one. */
import { useSignal } from "@preact/signals";
import { Dialog } from "./parts/dialog.tsx";
import { Field } from "./parts/form.tsx";
import { credential, signIn, stayUnknown } from "./session.ts";

const spec = {
  name: "credential",
  label: "API key or access token",
  kind: "secret",
  hint: "Kept while this tab is open, and sent to this petstore alone.",
} as const;

export function SignIn() {
  const text = useSignal("");
  const error = useSignal<string | undefined>(undefined);
  const type = (value: string) => {
    text.value = value;
  };
  const send = (event: Event) => {
    event.preventDefault();
    // A header can't carry other characters.
    if (/^[!-~]+$/.test(text.value.trim())) signIn(text.value.trim());
    else error.value = "Enter an API key or a token; neither has spaces.";
  };
  return (
    <Dialog title="Sign in" onClose={stayUnknown}>
      <form noValidate onSubmit={send}>
        <p>
          {credential.value
            ? "What you signed in with is not valid here, or not any more."
            : "This petstore wants to know who you are."}
        </p>
        <Field spec={spec} value={text.value} error={error.value} onInput={type} />
        <footer>
          <button type="submit" class="primary">
            Sign in
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
