/**
 * The page at /ui: static files, served without authentication before the filters, because a browser cannot send a token when it
 * opens a page. The page reads what it shows from the API with the user's credentials.
 */
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { gzipSync } from "node:zlib";
import { serviceUnavailable } from "@coxswain/apimachinery/objects/errors/status-error";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { Exchange } from "@coxswain/apimachinery/serving/exchange";
import { methodNotAllowed } from "../handlers/negotiation.ts";
import { writeError } from "../handlers/response.ts";

const types: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Allows loading, executing, framing and submitting only to this server. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "font-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "worker-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types worker",
].join("; ");

const headers: Readonly<Record<string, string>> = {
  "content-security-policy": policy,
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cross-origin-resource-policy": "same-origin",
  "permissions-policy": "camera=(), geolocation=(), microphone=()",
  // Revalidated by ETag: after an upgrade, a cached page of the older server might not work with this one.
  "cache-control": "no-cache",
};

interface Asset {
  readonly type: string;
  readonly tag: string;
  readonly plain: Buffer;
  /** Gzip encoding; undefined for files that are compressed already. */
  readonly zipped: Buffer | undefined;
}

export class UiPages {
  readonly #assets: ReadonlyMap<string, Asset>;

  /** @param folder of the built page */
  constructor(folder: URL, log: Logger) {
    this.#assets = readAssets(folder, log);
  }

  /** @returns whether the path belongs to the UI */
  handle(exchange: Exchange): boolean {
    const path = exchange.url.split("?", 1)[0]!;
    if (path !== "/ui" && !path.startsWith("/ui/")) return false;
    if (exchange.method !== "GET" && exchange.method !== "HEAD") writeError(exchange, methodNotAllowed());
    else if (path === "/ui") exchange.respond(302, { ...headers, location: "ui/" });
    else this.#answer(exchange, path.slice("/ui/".length) || "index.html");
    return true;
  }

  #answer(exchange: Exchange, name: string): void {
    const asset = this.#assets.get(name);
    if (this.#assets.size === 0) {
      writeError(exchange, serviceUnavailable("the page was not built with this server; ./cox build makes it"));
      return;
    }
    if (asset === undefined) {
      exchange.respond(404, { ...headers, "content-type": "text/plain; charset=utf-8" }, "404 page not found\n");
      return;
    }
    const common = { ...headers, etag: asset.tag, vary: "accept-encoding" };
    if (exchange.headers["if-none-match"]?.split(/, */).includes(asset.tag)) {
      exchange.respond(304, common);
      return;
    }
    const zipped = /\bgzip\b(?!;q=0(?:\.0*)?(?:,|$))/.test(String(exchange.headers["accept-encoding"] ?? ""))
      ? asset.zipped
      : undefined;
    const type = { ...common, "content-type": asset.type, ...(zipped && { "content-encoding": "gzip" }) };
    exchange.respond(200, type, zipped ?? asset.plain);
  }
}

/** @returns an empty map, with a line in the log, when the page was not built */
function readAssets(folder: URL, log: Logger): ReadonlyMap<string, Asset> {
  try {
    const names = readdirSync(folder).filter((name) => types[extname(name)] !== undefined);
    return new Map(names.map((name) => [name, assetOf(name, readFileSync(new URL(name, folder)))]));
  } catch (err) {
    log.error("--ui: the page has not been built, /ui responds with 503; run ./cox build", err, { folder: folder.pathname });
    return new Map();
  }
}

function assetOf(name: string, plain: Buffer): Asset {
  const extension = extname(name);
  return {
    type: types[extension]!,
    tag: `"${createHash("sha256").update(plain).digest("base64url").slice(0, 22)}"`,
    plain,
    zipped: extension === ".woff2" ? undefined : gzipSync(plain, { level: 9 }),
  };
}
