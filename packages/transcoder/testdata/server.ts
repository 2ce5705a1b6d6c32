/** A server of a service that runs in this process, on a real port. */
import type { DescService } from "@bufbuild/protobuf";
import { createRouterTransport, type ServiceImpl } from "@connectrpc/connect";
import { type FastifyInstance, fastify } from "fastify";
import { serverOptions, type TranscoderOptions, transcoder } from "../index.ts";

/** `more` registers what stands behind the transcoder. */
export async function serve<S extends DescService>(
  desc: S,
  implementation: Partial<ServiceImpl<S>>,
  options: Partial<TranscoderOptions> = {},
  more: (app: FastifyInstance) => Promise<void> = async () => {},
) {
  const transport = createRouterTransport(({ service }) => service(desc, implementation));
  const given = { services: [{ desc, transport }], ...options };
  const app = fastify(serverOptions(given));
  await app.register(transcoder, given);
  await more(app);
  await app.listen({ host: "127.0.0.1", port: 0 });
  const { port } = app.server.address() as { port: number };
  const call = async (path: string, init?: RequestInit) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { redirect: "manual", ...init });
    const text = await response.text();
    const record = () => JSON.parse(text) as Record<string, unknown>;
    return { status: response.status, headers: response.headers, text, record };
  };
  return { app, port, call };
}
