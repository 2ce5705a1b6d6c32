/** A name. A word of usual length is not broken, however narrow its column is. */
export const Name = ({ children: text }: { readonly children: string }) => (
  <span class={/\S{18}/.test(text) ? undefined : "name"}>{text}</span>
);
