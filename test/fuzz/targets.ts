import type { Target } from "./target.ts";
import { http } from "./targets/http.ts";
import { http2 } from "./targets/http2.ts";
import { link } from "./targets/link.ts";
import { readers } from "./targets/readers.ts";
import { rpc } from "./targets/rpc.ts";

/** Everything that takes input from outside. */
export const targets = [http, rpc, http2, link, readers] as unknown as readonly Target<unknown>[];
