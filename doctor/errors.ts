/** The doctor can't look, for the reason in the message, which says what to do. */
export class CannotLook extends Error {
  override readonly name = "CannotLook";
  /** Whether that is because MongoDB is of a version or kind that the petstore can't use. */
  readonly isVersion: boolean;
  constructor(message: string, isVersion = false) {
    super(message);
    this.isVersion = isVersion;
  }
}
