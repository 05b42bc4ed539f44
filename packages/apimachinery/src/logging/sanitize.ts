import type { Fields } from "./format.ts";

/** What values of these names are, wherever in a log line's fields they stand; without `-`, `_` and case. */
const sensitive: Readonly<Record<string, string>> = {
  token: "token",
  idtoken: "token",
  accesstoken: "token",
  refreshtoken: "token",
  bearertoken: "token",
  authorization: "token",
  proxyauthorization: "token",
  cookie: "token",
  password: "password",
  passphrase: "password",
  secret: "password",
  stringdata: "password",
  clientkeydata: "security-key",
  privatekey: "security-key",
  keypem: "security-key",
  key: "security-key",
};
/** Common words are only sensitive as a member of something that is: a pair of PEMs, an encryption key. */
const onlyBeside: Readonly<Record<string, readonly string[]>> = { key: ["cert"], secret: ["name"] };
const deepest = 8;

/**
 * --experimental-logging-sanitization: a line with something secret in its fields says so and nothing else.
 * @returns undefined when there is nothing secret
 * Source: k8s.io/component-base logs/sanitization, logs/datapol
 */
export function redacted(fields: Fields): { message: string; fields: Fields } | undefined {
  for (const [key, value] of Object.entries(fields)) {
    const types = new Set<string>();
    collect(key, value, fields, types, 0);
    if (types.size > 0) return { message: "Log message has been redacted.", fields: { key, types: [...types] } };
  }
  return undefined;
}

function collect(name: string, value: unknown, owner: object, types: Set<string>, depth: number): void {
  if (value === undefined || value === null || value === "" || depth > deepest) return;
  const plain = name.replaceAll(/[-_]/g, "").toLowerCase();
  const beside = Object.hasOwn(onlyBeside, plain) ? (onlyBeside[plain] as readonly string[]) : [];
  if (Object.hasOwn(sensitive, plain) && beside.every((other) => Object.hasOwn(owner, other))) {
    types.add(sensitive[plain] as string);
    return;
  }
  if (typeof value !== "object") return;
  const isSecret = (value as { kind?: unknown }).kind === "Secret";
  for (const [member, inner] of Object.entries(value)) {
    if (isSecret && member === "data" && inner) types.add("password");
    else collect(member, inner, value, types, depth + 1);
  }
}
