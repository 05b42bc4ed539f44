import { jsonMediaType, protobufMediaType } from "../objects/codec/negotiate.ts";
import { encodeProtobuf, hasProtobufForm } from "../objects/codec/protobuf.ts";
import { formatGroupVersion, type GroupVersionKind, parseGroupVersion, type ResourceRef } from "../objects/meta/group-version.ts";
import type { DeleteOptions, TypeMeta } from "../objects/meta/types.ts";
import { stringifyWire } from "./wire-json.ts";

/** An encoded request body and its content type. */
export interface Body {
  readonly contentType: string;
  readonly bytes: Buffer | string;
}

/**
 * Encodes an object. Protobuf is used if requested and if both the resource and the object have a protobuf form (the Scale of a
 * custom resource has one, but its server does not accept it); JSON otherwise.
 * @param subresource its bodies may be of another kind than the resource; they have to carry apiVersion and kind then
 */
export function objectBody(ref: ResourceRef, object: object, protobuf: boolean, subresource: string | undefined): Body {
  const { apiVersion, kind: said }: Partial<TypeMeta> = object;
  const own = apiVersion !== undefined && said !== undefined ? kindOf(apiVersion, said) : undefined;
  const kind = own ?? (subresource === undefined || subresource === "status" ? ref : undefined);
  if (protobuf && kind !== undefined && hasProtobufForm(ref) && hasProtobufForm(kind)) return protobufBody(object, kind);
  // The server requires apiVersion and kind in every body; items of lists lack them.
  return jsonBody(
    own !== undefined || subresource !== undefined ? object : { ...object, apiVersion: formatGroupVersion(ref), kind: ref.kind },
  );
}

/** Encodes DeleteOptions: protobuf if requested and if the resource has a protobuf form; JSON otherwise. */
export function deleteBody(ref: ResourceRef, options: DeleteOptions, protobuf: boolean): Body {
  if (protobuf && hasProtobufForm(ref)) return protobufBody(options, deleteOptionsKind);
  return jsonBody({ kind: "DeleteOptions", apiVersion: "v1", ...options });
}

/** Encodes any value as JSON; bigints as numbers. */
export function jsonBody(value: unknown): Body {
  return { contentType: jsonMediaType, bytes: stringifyWire(value) };
}

const deleteOptionsKind: GroupVersionKind = { group: "", version: "v1", kind: "DeleteOptions" };

function protobufBody(object: object, kind: GroupVersionKind): Body {
  return { contentType: protobufMediaType, bytes: encodeProtobuf(object, kind) };
}

function kindOf(apiVersion: string, kind: string): GroupVersionKind | undefined {
  const gv = parseGroupVersion(apiVersion);
  return gv && { ...gv, kind };
}
