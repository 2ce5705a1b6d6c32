/** Makes something of each key when it is asked for first, and keeps it: reading a descriptor's annotations is slow. */
export function remembered<K extends object, V>(make: (key: K) => V): (key: K) => V {
  const known = new WeakMap<K, { readonly value: V }>();
  return (key) => {
    let found = known.get(key);
    if (!found) {
      found = { value: make(key) };
      known.set(key, found);
    }
    return found.value;
  };
}
