import type { Fields } from "./format.ts";

/** Kind of secret by field name at any depth, compared without `-`, `_` and case. */
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
/** Ambiguous names are sensitive only next to these fields: a PEM pair, an encryption key. */
const onlyBeside: Readonly<Record<string, readonly string[]>> = { key: ["cert"], secret: ["name"] };
const deepest = 8;

/**
 * --experimental-logging-sanitization: replaces a message whose fields contain a secret.
 * @returns undefined when there is no secret
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
  const beside = Object.hasOwn(onlyBeside, plain) ? onlyBeside[plain]! : [];
  if (Object.hasOwn(sensitive, plain) && beside.every((other) => Object.hasOwn(owner, other))) {
    types.add(sensitive[plain]!);
    return;
  }
  if (typeof value !== "object") return;
  const isSecret = (value as { kind?: unknown }).kind === "Secret"; // cast: an object of unknown fields
  for (const [member, inner] of Object.entries(value)) {
    if (isSecret && member === "data" && inner) types.add("password");
    else collect(member, inner, value, types, depth + 1);
  }
}
