import { indentJson } from "@coxswain/apimachinery/objects/codec/json";
import { kubernetesRelease } from "@coxswain/apimachinery/process/release";
import type { RequestContext } from "../request/context.ts";

/** The server version that `kubectl version` prints. */
export const serverVersion = {
  ...kubernetesRelease,
  gitCommit: "ab69524f795c42094a6630298ff53f3c3ebab7f4",
  gitTreeState: "clean",
  buildDate: "2021-12-07T18:09:57Z",
  goVersion: "go1.17.3",
  compiler: "gc",
  platform: `linux/${process.arch === "x64" ? "amd64" : process.arch}`,
} as const;

/** Always indented JSON, as upstream. */
export function writeVersion(ctx: RequestContext): void {
  ctx.exchange.respond(200, { "content-type": "application/json" }, indentJson(JSON.stringify(serverVersion)));
}
