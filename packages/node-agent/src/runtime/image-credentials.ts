import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { parseImageReference } from "@coxswain/apimachinery/objects/validation/image-reference";
import type { CriInput } from "./cri-schema.ts";

/** Credentials for the images that match a pattern. */
export interface Login {
  /** Registry host, optionally with port and path; `*` matches within one label of the host name. */
  pattern: string;
  auth: CriInput<"AuthConfig">;
}

/** The credentials of pull secrets; entries that cannot be parsed are ignored, as upstream does. */
export function loginsOf(secrets: readonly Secret[]): Login[] {
  const logins: Login[] = [];
  for (const secret of secrets) {
    const json = secret.data?.[".dockerconfigjson"];
    const old = secret.data?.[".dockercfg"];
    if (secret.type === "kubernetes.io/dockerconfigjson" && json !== undefined) logins.push(...parseDockerConfig(decode(json)));
    else if (secret.type === "kubernetes.io/dockercfg" && old !== undefined) logins.push(...parseDockerConfig(decode(old)));
  }
  return logins;
}

function decode(base64: string): string {
  return Buffer.from(base64, "base64").toString("utf8");
}

/** Parses `.dockerconfigjson` (entries below `auths`) and `.dockercfg` (entries at the top level). */
export function parseDockerConfig(text: string): Login[] {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  return loginsIn(parsed);
}

/** The credentials in a configuration, as `parseDockerConfig`. */
export function loginsIn(parsed: unknown): Login[] {
  if (!isJsonObject(parsed)) return [];
  const auths = Object.hasOwn(parsed, "auths") ? parsed["auths"] : parsed;
  if (!isJsonObject(auths)) return [];
  const logins: Login[] = [];
  for (const [server, entry] of Object.entries(auths)) {
    if (!isJsonObject(entry)) continue;
    const text = (field: string): string | undefined => (typeof entry[field] === "string" ? entry[field] : undefined);
    const auth = text("auth");
    const [user, ...rest] = auth === undefined ? [] : decode(auth).split(":");
    logins.push({
      pattern: server
        .replace(/^https?:\/\//, "")
        .replace(/\/(v1|v2)\/?$/, "")
        .replace(/\/$/, ""),
      auth: {
        username: text("username") ?? user ?? "",
        password: text("password") ?? rest.join(":"),
        identityToken: text("identitytoken") ?? "",
      },
    });
  }
  return logins;
}

/** The credentials that match an image, the longest pattern first. */
export function loginsFor(image: string, logins: readonly Login[]): CriInput<"AuthConfig">[] {
  const reference = parseImageReference(image);
  if (reference === undefined) return [];
  return logins
    .filter((login) => matches(login.pattern, reference.domain, reference.path))
    .sort((a, b) => b.pattern.length - a.pattern.length)
    .map((login) => login.auth);
}

/** Whether a pattern such as `*.example.com/team` matches an image. */
export function fitsImage(pattern: string, image: string): boolean {
  const reference = parseImageReference(image);
  return reference !== undefined && matches(pattern, reference.domain, reference.path);
}

function matches(pattern: string, domain: string, path: string): boolean {
  const slash = pattern.indexOf("/");
  const host = slash < 0 ? pattern : pattern.slice(0, slash);
  const prefix = slash < 0 ? "" : pattern.slice(slash + 1);
  const wanted = host === "index.docker.io" ? "docker.io" : host;
  const parts = wanted.split(".");
  const actual = domain.split(".");
  if (parts.length !== actual.length || !parts.every((part, i) => partMatches(part, actual[i]!))) return false;
  return prefix === "" || path === prefix || path.startsWith(`${prefix}/`);
}

/** Matches one label of a host name; `*` matches any substring. */
function partMatches(pattern: string, part: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return first === part;
  if (!part.startsWith(first) || !part.endsWith(last)) return false;
  let at = first.length;
  for (const piece of rest) {
    const found = part.indexOf(piece, at);
    if (found < 0) return false;
    at = found + piece.length;
  }
  return at <= part.length - last.length;
}
