/** Bootstrap tokens: `<id>.<secret>`, kept as Secrets of kube-system. Source: k8s.io/cluster-bootstrap/token */
import { randomInt } from "node:crypto";
import { formatTime, humanDuration, parseTime } from "@coxswain/apimachinery/objects/meta/time";
import type { KubeObject } from "@coxswain/apimachinery/objects/meta/types";
import type { Secret } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { UsageFailure } from "../failure.ts";
import { nodeTokenGroup } from "./bootstrap-objects.ts";

export interface BootstrapToken {
  readonly id: string;
  readonly secret: string;
  readonly description: string;
  /** Expiry in ms since the epoch; undefined: never. */
  readonly expiresMs: number | undefined;
  readonly usages: readonly string[];
  readonly groups: readonly string[];
}

const tokenForm = /^([a-z0-9]{6})\.([a-z0-9]{16})$/;
const idForm = /^[a-z0-9]{6}$/;
const knownUsages = ["signing", "authentication"];
const letters = "abcdefghijklmnopqrstuvwxyz0123456789";
export const dayMs = 86_400_000;

/** `<6 characters>.<16 characters>`, each a random lower-case letter or digit. The second part is secret. */
export function newTokenText(): string {
  const random = (length: number): string => Array.from({ length }, () => letters[randomInt(letters.length)]).join("");
  return `${random(6)}.${random(16)}`;
}

/** @throws UsageFailure; the message does not repeat the text, which may be a mistyped secret */
export function parseToken(text: string): { readonly id: string; readonly secret: string } {
  const [, id, secret] = tokenForm.exec(text) ?? [];
  if (id === undefined || secret === undefined)
    throw new UsageFailure(
      "the bootstrap token is not of the form abcdef.0123456789abcdef (6 and 16 lower case letters or digits)",
    );
  return { id, secret };
}

/** Extracts the id from a token; accepts a bare id. @throws UsageFailure */
export const tokenId = (text: string): string => (idForm.test(text) ? text : parseToken(text).id);

interface TokenOptions {
  readonly token: string;
  readonly description?: string | undefined;
  /** 0: the token never expires. */
  readonly ttlMs: number;
  readonly usages?: readonly string[] | undefined;
  readonly groups?: readonly string[] | undefined;
  readonly now: number;
}

/** @throws UsageFailure */
export function newToken({
  token,
  description = "",
  ttlMs,
  usages = knownUsages,
  groups = [nodeTokenGroup],
  now,
}: TokenOptions): BootstrapToken {
  const unknown = usages.filter((usage) => !knownUsages.includes(usage));
  if (unknown.length > 0) throw new UsageFailure(`usages of a token are ${knownUsages.join(" and ")}, not ${unknown.join(", ")}`);
  const wrong = groups.filter((name) => !/^system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]$/.test(name));
  if (wrong.length > 0) throw new UsageFailure(`groups of a token begin with system:bootstrappers:, not ${wrong.join(", ")}`);
  return { ...parseToken(token), description, expiresMs: ttlMs === 0 ? undefined : now + ttlMs, usages, groups };
}

export const secretNameOf = (id: string): string => `bootstrap-token-${id}`;

export function secretOf({ id, secret, description, expiresMs, usages, groups }: BootstrapToken): KubeObject {
  const data: Record<string, string> = {
    "token-id": id,
    "token-secret": secret,
    ...(description !== "" && { description }),
    ...(expiresMs !== undefined && { expiration: formatTime(expiresMs) }),
    ...Object.fromEntries(usages.map((usage) => [`usage-bootstrap-${usage}`, "true"])),
    ...(groups.length > 0 && { "auth-extra-groups": groups.join(",") }),
  };
  return {
    apiVersion: "v1",
    kind: "Secret",
    type: "bootstrap.kubernetes.io/token",
    metadata: { namespace: "kube-system", name: secretNameOf(id) },
    data: Object.fromEntries(Object.entries(data).map(([key, value]) => [key, Buffer.from(value).toString("base64")])),
  } as KubeObject; // cast: a KubeObject names only the fields of all kinds
}

/** @returns undefined for a Secret that is not a bootstrap token */
export function tokenOf({ type, metadata, data = {} }: Secret): BootstrapToken | undefined {
  const text = (key: string): string => (Object.hasOwn(data, key) ? Buffer.from(data[key] ?? "", "base64").toString() : "");
  const id = text("token-id");
  if (type !== "bootstrap.kubernetes.io/token" || metadata.name !== secretNameOf(id)) return undefined;
  const expiration = text("expiration");
  return {
    id,
    secret: text("token-secret"),
    description: text("description"),
    expiresMs: expiration === "" ? undefined : (parseTime(expiration) ?? 0),
    usages: knownUsages.filter((usage) => text(`usage-bootstrap-${usage}`) === "true"),
    groups: text("auth-extra-groups")
      .split(",")
      .filter((name) => name !== ""),
  };
}

/** Rows of `token list`, the heading first. */
export function tokenRows(tokens: readonly BootstrapToken[], now: number): string[][] {
  const time = ({ expiresMs }: BootstrapToken): [string, string] => {
    if (expiresMs === undefined) return ["<forever>", "<never>"];
    return [expiresMs <= now ? "<expired>" : humanDuration(expiresMs - now), formatTime(expiresMs)];
  };
  return [
    ["TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS"],
    ...tokens.map((token) => [
      `${token.id}.${token.secret}`,
      ...time(token),
      token.usages.join(",") || "<none>",
      token.description || "<none>",
      token.groups.join(",") || "<none>",
    ]),
  ];
}
