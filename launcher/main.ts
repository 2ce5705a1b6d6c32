/** `npm start`: runs the whole petstore on this machine until Ctrl-C. */
import { launch } from "./launch.ts";

await launch();
