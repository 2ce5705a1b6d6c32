import { render } from "preact";
import { watch } from "./live/watch.ts";
import { Shell } from "./shell.tsx";

const place = document.getElementById("console");
if (place) {
  place.replaceChildren();
  render(<Shell />, place);
  watch();
}
