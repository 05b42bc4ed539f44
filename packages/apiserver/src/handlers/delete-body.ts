import { decodeObject } from "@coxswain/apimachinery/codec/codec";
import { encodeUntyped } from "@coxswain/apimachinery/codec/json";
import { badRequest, StatusError } from "@coxswain/apimachinery/errors/status-error";
import type { DeleteOptions } from "@coxswain/apimachinery/meta/types";
import { inputMediaType, readBody } from "./body.ts";
import type { Call } from "./env.ts";
import { deleteOptions } from "./options.ts";

/**
 * DeleteOptions from the body when there is one, else from the query. Clients may name the kind in any group version.
 * @throws BadRequest, Invalid, UnsupportedMediaType.
 */
export async function readDeleteOptions(call: Call): Promise<DeleteOptions> {
  const bytes = await readBody(call);
  if (bytes.length === 0) return deleteOptions(call.ctx.query, undefined);
  const mediaType = inputMediaType(call);
  let body: DeleteOptions;
  try {
    body = decodeObject(bytes, mediaType, { group: "meta.k8s.io", version: "v1", kind: "DeleteOptions" }, { asExpected: true })
      .object as DeleteOptions;
  } catch (err) {
    if (err instanceof StatusError && err.code < 500) throw err;
    throw badRequest((err as Error).message);
  }
  if (body.kind !== undefined && body.kind !== "" && body.kind !== "DeleteOptions") {
    throw badRequest("decoded object cannot be converted to DeleteOptions");
  }
  call.ctx.audit?.requestObject(undefined, () =>
    encodeUntyped({ ...body, kind: "DeleteOptions", apiVersion: body.apiVersion || "v1" }),
  );
  return deleteOptions(call.ctx.query, body);
}
