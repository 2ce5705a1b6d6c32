/** A coloured tile with the first letter of a name, the same for the same record. */
export const Avatar = ({ name, id }: { readonly name: string; readonly id: bigint }) => (
  <span class={`avatar hue-${id % 6n}`} aria-hidden="true">
    {[...name][0]?.toUpperCase()}
  </span>
);
