/** `coxswain check https://127.0.0.1:6443/readyz [<CA file>]`: health check for containers; exit code 0 for a 200. */

import { readFileSync } from "node:fs";
import http from "node:http";
import https from "node:https";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";

const [url = "", authorities] = process.argv.slice(2);
// Without a CA file the certificate is not verified: it is a daemon's self-signed one on the loopback interface.
const trust = authorities === undefined ? { rejectUnauthorized: false } : { ca: readFileSync(authorities) };
try {
  const { get } = url.startsWith("http:") ? http : https;
  get(url, { ...trust, timeout: 4_000 }, (answer) => end(answer.statusCode === 200, `${answer.statusCode}`))
    .on("error", (err) => end(false, err.message))
    .on("timeout", () => end(false, "no answer"));
} catch (err) {
  end(false, messageOf(err));
}

function end(isWell: boolean, what: string): void {
  if (!isWell) console.error(`${url}: ${what}`);
  process.exit(isWell ? 0 : 1);
}
