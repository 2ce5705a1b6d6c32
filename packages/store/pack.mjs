import { pack } from "../../scripts/pack.mjs";

pack({});
