/** The process that `mongo.crash.process.test.ts` kills. Arguments: the URI, the service, and the first number not yet used. */
import { print, writeOn } from "../fixtures/crash-writer.ts";
import { openForTest } from "../fixtures/mongo.ts";

const [uri = "", service = "", first = "1"] = process.argv.slice(2);
await writeOn(await openForTest(uri, service), Number(first));
print("ended");
