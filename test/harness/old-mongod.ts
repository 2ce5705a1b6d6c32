/** A server that answers as MongoDB 4.4 does when a client asks for its version. */
import { once } from "node:events";
import { type AddressInfo, createServer } from "node:net";
import { calculateObjectSize, serialize } from "bson";

export async function startOldMongod() {
  const hello = { ok: 1, isWritablePrimary: true, minWireVersion: 0, maxWireVersion: 9 };
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (request: Buffer) => socket.write(answerTo(request, hello)));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { uri: `mongodb://127.0.0.1:${port}/`, [Symbol.dispose]: () => void server.close() };
}

/** An OP_REPLY to an OP_QUERY, and an OP_MSG to an OP_MSG: a header of 16 bytes, and then what the kind asks for. */
function answerTo(request: Buffer, document: object): Buffer {
  const isQuery = request.readInt32LE(12) === 2004;
  const front = Buffer.alloc(16 + (isQuery ? 20 : 5));
  front.writeInt32LE(front.length + calculateObjectSize(document), 0);
  front.writeInt32LE(request.readInt32LE(4), 8);
  front.writeInt32LE(isQuery ? 1 : 2013, 12);
  if (isQuery) front.writeInt32LE(1, 32);
  return Buffer.concat([front, serialize(document)]);
}
