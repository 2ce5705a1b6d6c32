/** Validates messages by the rules of their contract (buf.validate), as the gateway does. `connect-transcoder/validation`. */
export { prepareValidation, validate } from "./validation/validate.ts";
export { type Violation, violationsToProto } from "./validation/violation.ts";
