/**
 * The client of the petstore that the page came from, by Connect to the same origin. Every call is recorded; a call that is
 * refused for lack of a credential opens the sign-in dialog.
 */
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createPetstore, type Petstore } from "@petstore/client";
import { recorded } from "./requests/log.ts";
import { credential, isAsked, sessions } from "./session.ts";

/** Where the gateway is, without a slash at the end. */
export const baseUrl = new URL(".", document.baseURI).href.replace(/\/$/, "");

/** After the caller has changed, a call is not retried and its answer is dropped. */
function identified(): Interceptor {
  const session = sessions.peek();
  const stay = () => {
    if (session !== sessions.peek()) throw new DOMException("The caller has changed.", "AbortError");
  };
  return (next) => async (request) => {
    stay();
    try {
      const response = await next(request);
      stay();
      return response;
    } catch (error) {
      stay();
      if (ConnectError.from(error).code === Code.Unauthenticated) isAsked.value = true;
      throw error;
    }
  };
}

/** The client of the current caller. */
export let petstore: Petstore;
sessions.subscribe(() => {
  // The outermost interceptor is the first.
  const shown = credential.peek() || undefined;
  petstore = createPetstore({ baseUrl, credential: shown, interceptors: [identified(), recorded] });
});
