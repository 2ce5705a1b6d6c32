/** Advice for people when the petstore can't be used. */
import { PetstoreError } from "@petstore/client";

/**
 * @throws what was thrown, if it is no error of the petstore.
 */
export function advice(thrown: unknown, url: string): string {
  if (!(thrown instanceof PetstoreError)) throw thrown;
  const { code, message } = thrown;
  switch (code) {
    case "UNREACHABLE":
      return (
        `No petstore answers at ${url} (${message}).\n` +
        "Start one with npm start in another terminal, or say by --url where it is."
      );
    case "UNAUTHENTICATED":
    case "PERMISSION_DENIED":
      return (
        `The petstore at ${url} wants another credential: ${message}\n` +
        "Put into CREDENTIAL what npm run -s keys -- create --name demo --scopes '*' prints, or a token of its issuer."
      );
    default:
      return `The petstore at ${url} refused (${code}): ${message}`;
  }
}
