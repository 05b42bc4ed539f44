/**
 * Static tokens of --token-auth-file: lines of `token,user,uid,"group1,group2"`, read once at startup.
 * Source: k8s.io/apiserver pkg/authentication/token/tokenfile/tokenfile.go
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { TokenAuthenticator } from "@coxswain/apimachinery/serving/authentication/authenticator";
import type { UserInfo } from "../request/context.ts";
import { parseCsv } from "./csv.ts";

/** @throws Error when the file cannot be read or a line has too few columns. */
export function tokenFile(path: string, log: Logger): TokenAuthenticator {
  const users = parseTokenFile(readFileSync(path, "utf8"), path, log);
  return async (token) => {
    // Lookup by digest prevents timing attacks on the token.
    const user = users.get(digest(token));
    return user === undefined ? undefined : { user };
  };
}

/** Users by digest of the token; of duplicate tokens the last one wins. @throws Error for a line with less than 3 columns. */
export function parseTokenFile(text: string, path: string, log: Logger): Map<string, UserInfo> {
  const users = new Map<string, UserInfo>();
  for (const [index, columns] of parseCsv(text).entries()) {
    if (columns.length < 3) {
      throw new Error(`token file '${path}' must have at least 3 columns (token, user name, user uid), found ${columns.length}`);
    }
    // Cast: the number of columns was checked above.
    const [token, name, uid, groups] = columns as [string, string, string, string | undefined];
    if (token === "") {
      log.warn("empty token has been found in token file", { path, record: index + 1 });
      continue;
    }
    const key = digest(token);
    if (users.has(key)) log.warn("duplicate token has been found in token file", { path, record: index + 1 });
    users.set(key, { name, ...(uid === "" ? {} : { uid }), groups: groups === undefined ? [] : groups.split(",") });
  }
  return users;
}

function digest(token: string): string {
  return createHash("sha256").update(token).digest("latin1");
}
