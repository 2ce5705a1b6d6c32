/** The petstore that this page came from, by Connect to the same origin. Every call is recorded, and asks who calls if need be. */
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-web";
import { createPetstore, type Petstore } from "@petstore/client";
import { recorded } from "./requests/log.ts";
import { credential, isAsked, sessions } from "./session.ts";

/** Where the gateway is, without a slash at the end. */
export const baseUrl = new URL(".", document.baseURI).href.replace(/\/$/, "");

/** Calls as who is signed in now, and as nobody else: a call that outlives its caller is not repeated and not answered. */
function identified(): Interceptor {
  const session = sessions.peek();
  const shown = credential.peek();
  const stay = () => {
    if (session !== sessions.peek()) throw new DOMException("The caller has changed.", "AbortError");
  };
  return (next) => async (request) => {
    stay();
    if (shown) request.header.set("Authorization", `Bearer ${shown}`);
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

/** Of the caller now. */
export let petstore: Petstore;
sessions.subscribe(() => {
  // The outermost interceptor is the first.
  petstore = createPetstore({
    transport: createConnectTransport({ baseUrl, interceptors: [identified(), recorded] }),
  });
});
