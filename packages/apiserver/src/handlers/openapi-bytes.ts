/**
 * One OpenAPI document in the forms that clients request, each encoded once, with the SHA-512 as ETag and a gzip version.
 * Source: k8s.io/kube-openapi pkg/handler/handler.go; net/http ServeContent (304)
 */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gzip } from "node:zlib";
import type { Steps } from "@coxswain/apimachinery/process/event-loop/steps";
import type { Turns } from "@coxswain/apimachinery/process/event-loop/turns";
import type { ByteShare, CachedBytes } from "@coxswain/apimachinery/process/memory/byte-share";
import type { RequestContext } from "../request/context.ts";
import { acceptsGzip } from "./response.ts";

export interface DocumentForm {
  /** The media type in Accept. */
  readonly mediaType: string;
  /** The Content-Type of the response. */
  readonly contentType: string;
  /** Encodes the document in steps of a few milliseconds. */
  make(): Steps<Buffer>;
}

interface Made {
  readonly bytes: Buffer;
  readonly etag: string;
  packed?: Promise<Buffer>;
}

/** Memory accounting of one encoded form. */
class KeptForm implements CachedBytes {
  readonly sizeBytes: number;
  readonly drop: () => void;
  used = false;
  since = 0;

  constructor(sizeBytes: number, drop: () => void) {
    this.sizeBytes = sizeBytes;
    this.drop = drop;
  }
}

/** Serves one document; forms are encoded on first request. */
export class OpenApiBytes {
  readonly #forms: readonly DocumentForm[];
  readonly #modified: number;
  readonly #turns: Turns;
  readonly #building: (work: Promise<unknown>) => void;
  readonly #share: ByteShare;
  readonly #made = new Map<DocumentForm, Promise<Made>>();
  readonly #kept = new Map<DocumentForm, KeptForm>();

  /**
   * @param forms the first one is the default
   * @param modified milliseconds since the epoch
   * @param share of the encoded forms; the compressed ones are a tenth of them and are not counted
   * @param building called with each encoding when it begins
   */
  constructor(
    forms: readonly DocumentForm[],
    modified: number,
    { turns, share }: { readonly turns: Turns; readonly share: ByteShare },
    building: (work: Promise<unknown>) => void = () => {},
  ) {
    this.#share = share;
    this.#turns = turns;
    this.#forms = forms;
    this.#modified = modified;
    this.#building = building;
  }

  /** Responds with 304 when the client has the document, 406 without a body when it accepts none of the forms. */
  async respond(ctx: RequestContext): Promise<void> {
    const { exchange } = ctx;
    if (exchange.method !== "GET" && exchange.method !== "HEAD") {
      return exchange.respond(405, { "content-type": "text/plain; charset=utf-8" }, "Method Not Allowed\n");
    }
    const form = this.#formOf(exchange.headers.accept);
    if (form === undefined) return exchange.respond(406, { vary: "Accept-Encoding, Accept" });
    const made = await beforeEnd(ctx, this.#make(form));
    const headers: Record<string, string> = {
      "content-type": form.contentType,
      etag: made.etag,
      "last-modified": new Date(this.#modified).toUTCString(),
      vary: "Accept-Encoding, Accept",
      "cache-control": "no-cache, private",
    };
    if (this.#isKnown(exchange.headers, made.etag)) {
      delete headers["content-type"];
      return exchange.respond(304, headers);
    }
    if (!acceptsGzip(exchange.headers["accept-encoding"])) return exchange.respond(200, headers, made.bytes);
    made.packed ??= promisify(gzip)(made.bytes);
    exchange.respond(200, { ...headers, "content-encoding": "gzip" }, await beforeEnd(ctx, made.packed));
  }

  /** Encodes a form once, for concurrent requests, too. */
  #make(form: DocumentForm): Promise<Made> {
    let made = this.#made.get(form);
    const kept = this.#kept.get(form);
    if (kept !== undefined) kept.used = true;
    if (made === undefined) {
      made = (async () => this.#turns.run(taggedSteps(form)))();
      made.then(
        ({ bytes }) => this.#keep(form, bytes.length),
        () => this.#made.delete(form),
      );
      this.#building(made);
      this.#made.set(form, made);
    }
    return made;
  }

  #keep(form: DocumentForm, sizeBytes: number): void {
    const drop = (): void => {
      this.#made.delete(form);
      this.#kept.delete(form);
    };
    const kept = new KeptForm(sizeBytes, drop);
    if (this.#share.keep(kept)) this.#kept.set(form, kept);
    else drop();
  }

  #formOf(accept: string | undefined): DocumentForm | undefined {
    if (accept === undefined || accept.trim() === "") return this.#forms[0];
    for (const range of accept.split(",")) {
      const type = range.split(";")[0]?.trim() ?? "";
      const form = this.#forms.find(({ mediaType }) => isIn(mediaType, type));
      if (form !== undefined) return form;
    }
    return undefined;
  }

  /** If-Modified-Since is evaluated only without If-None-Match. */
  #isKnown(headers: RequestContext["exchange"]["headers"], etag: string): boolean {
    const tags = headers["if-none-match"];
    if (tags !== undefined) return tags.split(",").some((one) => ["*", etag].includes(one.trim().replace(/^W\//, "")));
    const since = Date.parse(headers["if-modified-since"] ?? "");
    return since >= Math.floor(this.#modified / 1000) * 1000;
  }
}

/** Waits for work that others share, until the request has ended. @throws the reason of the request's signal */
export async function beforeEnd<T>({ signal }: RequestContext, work: Promise<T>): Promise<T> {
  signal.throwIfAborted();
  const { promise: ended, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(signal.reason);
  signal.addEventListener("abort", end, { once: true });
  try {
    return await Promise.race([work, ended]);
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** Bytes hashed per step: about 2 ms. */
const hashedBytes = 1024 * 1024;

function* taggedSteps(form: DocumentForm): Steps<Made> {
  const bytes = yield* form.make();
  const hash = createHash("sha512");
  for (let at = 0; at < bytes.length; at += hashedBytes) {
    hash.update(bytes.subarray(at, at + hashedBytes));
    yield;
  }
  return { bytes, etag: `"${hash.digest("hex").toUpperCase()}"` };
}

/** Whether a media range includes a media type. */
function isIn(mediaType: string, range: string): boolean {
  return range === "*/*" || range === "application/*" || range === mediaType;
}
