import { parseJson } from "@coxswain/apimachinery/objects/codec/json";
import { badRequest } from "@coxswain/apimachinery/objects/errors/status-error";
import { goQuote } from "@coxswain/apimachinery/objects/meta/go-quote";

/**
 * The opaque `metadata.continue`: the key and the revision at which the next page begins. Base64url without padding of
 * `{"v":"meta.k8s.io/v1","rv":1234,"start":"web/pod-7\u0000"}`. `start` is relative to the list's prefix and is the first key
 * of the page. `rv` -1 continues at the current revision, after a token expired.
 * Source: k8s.io/apiserver pkg/storage/etcd3/store.go decodeContinue, encodeContinue
 */
interface ContinueToken {
  /** Relative to the listed prefix. */
  start: string;
  revision: number;
}

/** @param token its `start` is the first key of the next page */
export function encodeContinueToken(token: ContinueToken): string {
  return Buffer.from(JSON.stringify({ v: "meta.k8s.io/v1", rv: token.revision, start: token.start })).toString("base64url");
}

/** @throws BadRequest when the token is malformed, or its start key is outside the listed prefix */
export function decodeContinueToken(text: string): ContinueToken {
  let token: { v?: unknown; rv?: unknown; start?: unknown };
  try {
    const odd = text.search(/[^A-Za-z0-9_-]/);
    // A remainder of one digit does not encode a whole byte.
    const wrong = odd < 0 && text.length % 4 === 1 ? text.length - 1 : odd;
    if (wrong >= 0) throw new Error(`illegal base64 data at input byte ${wrong}`);
    token = parseJson(Buffer.from(text, "base64url")) as typeof token; // cast: its fields are checked below
    if (typeof token !== "object" || token === null) throw new Error("not an object");
  } catch (err) {
    throw invalid(err instanceof Error ? err.message : String(err));
  }
  if (token.v !== "meta.k8s.io/v1") {
    throw invalid(`server does not recognize this encoded version ${goQuote(String(token.v ?? ""))}`);
  }
  if (typeof token.rv !== "number" || !Number.isSafeInteger(token.rv) || token.rv === 0) {
    throw invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)");
  }
  if (typeof token.start !== "string" || token.start === "") throw invalid("encoded start key empty (version meta.k8s.io/v1)");
  // Otherwise a token could leave the namespace that the client is authorized for.
  if (token.start.startsWith("/") || token.start.split("/").some((part) => part === ".." || part === "." || part === "")) {
    throw invalid(token.start);
  }
  return { start: token.start, revision: token.rv };
}

const invalid = (detail: string) => badRequest(`invalid continue token: continue key is not valid: ${detail}`);
