/** Reads the bytes of a request's body; `decode.ts` makes an object of them. */
import { refuseManyValues } from "@coxswain/apimachinery/objects/codec/json-parse";
import { negotiateInput } from "@coxswain/apimachinery/objects/codec/negotiate";
import { type Call, maxBodyBytes } from "./env.ts";

/** @throws RequestEntityTooLarge when the body has too many bytes or too many values */
export async function readBody({ ctx }: Call): Promise<Buffer> {
  const { exchange } = ctx;
  const body = exchange.body(maxBodyBytes);
  const bytes = await (exchange.bodyIsReceived || ctx.receive === undefined ? body : ctx.receive(body));
  refuseManyValues(bytes);
  if (ctx.info.verb === "patch") ctx.audit?.requestPatch(bytes);
  return bytes;
}

/** @throws UnsupportedMediaType */
export function inputMediaType(call: Call): string {
  return negotiateInput(call.ctx.exchange.headers["content-type"], { protobuf: call.served.definition.custom !== true });
}
