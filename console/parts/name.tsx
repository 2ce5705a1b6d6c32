/** What people have written. Its words are not broken, however narrow the column is, unless one is very long. */
export const Name = ({ children: text }: { readonly children: string }) => (
  <span class={/\S{14}/.test(text) ? "long" : undefined}>{text}</span>
);
