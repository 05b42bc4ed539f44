/**
 * --encryption-provider-config: the resources that are encrypted in etcd, with their providers and
 * keys. The first provider writes.
 * Source: k8s.io/apiserver pkg/server/options/encryptionconfig, pkg/apis/config/validation
 */

import { readFileSync } from "node:fs";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import {
  child,
  type FieldError,
  formatFieldError,
  index,
  invalidValue,
  required,
} from "@coxswain/apimachinery/objects/errors/field-error";
import { GoText } from "@coxswain/apimachinery/objects/errors/go-syntax";
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import type { GroupResource } from "@coxswain/apimachinery/objects/meta/group-version";
import { formatDuration, parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import type { EncryptionMetrics, EncryptionMetricsOf } from "./encryption-metrics.ts";
import {
  type CipherName,
  type EncryptionKey,
  encryptionProvider,
  firstWrites,
  identityProvider,
  type PrefixedTransformer,
} from "./encryption-providers.ts";
import { envelopeProvider } from "./envelope.ts";
import { type KmsService, newKmsService } from "./kms-service.ts";
import type { Transformer } from "./transformer.ts";

type TransformerFor = (resource: GroupResource) => Transformer | undefined;

export interface Encryption {
  readonly transformerFor: TransformerFor;
  /** The KMS plugins in the order of the file, for health checks. */
  readonly kms: readonly { readonly name: string; readonly service: KmsService }[];
  /** Attaches metrics, which do not exist yet when the file is read. */
  countIn(metrics: EncryptionMetrics): void;
}

interface Configuration {
  apiVersion?: unknown;
  kind?: unknown;
  resources?: { resources?: string[]; providers?: Provider[] }[];
}

type Provider = Partial<Record<CipherName, { keys?: Key[] } | null>> & { identity?: unknown; kms?: KmsOptions | null };
type ProviderName = CipherName | "identity" | "kms";

interface Key {
  name?: string;
  secret?: string;
}

interface KmsOptions {
  name?: string;
  /** `unix:///path` */
  endpoint?: string;
  /** A Go duration: `3s`. */
  timeout?: string | null;
  cachesize?: number | null;
}

const defaultTimeout = "3s";
const defaultCacheSize = 1_000;

const providerNames: readonly ProviderName[] = ["kms", "aesgcm", "aescbc", "secretbox", "identity"];
const keySizes: Readonly<Record<CipherName, readonly number[]>> = {
  aescbc: [16, 24, 32],
  aesgcm: [16, 24, 32],
  secretbox: [32],
};

/** @throws Error with the file name and all validation errors; never contains a secret */
export function readEncryptionConfig(path: string): Encryption {
  let text: string;
  try {
    text = readFileSync(path, "utf8");
  } catch (err) {
    throw new Error(`error opening encryption provider configuration file ${JSON.stringify(path)}: ${messageOf(err)}`, {
      cause: err,
    });
  }
  try {
    return parseEncryptionConfig(text);
  } catch (err) {
    throw new Error(`error while parsing encryption provider configuration file ${JSON.stringify(path)}: ${messageOf(err)}`, {
      cause: err,
    });
  }
}

/** A resource listed in several entries gets the providers of all of them, in order. @throws Error with all validation errors */
export function parseEncryptionConfig(text: string): Encryption {
  const document = parseYaml(text);
  if (typeof document !== "object" || document === null) throw new Error("EncryptionConfiguration can't be nil");
  const config: Configuration = document;
  if (config.kind !== "EncryptionConfiguration" || config.apiVersion !== "apiserver.config.k8s.io/v1") {
    throw new Error(
      `no kind ${JSON.stringify(config.kind ?? "")} is registered for version ${JSON.stringify(config.apiVersion ?? "")}`,
    );
  }
  const errors = validate(config);
  if (errors.length > 0) {
    const texts = errors.map(formatFieldError);
    throw new Error(texts.length === 1 ? texts[0] : `[${texts.join(", ")}]`);
  }
  const kms: { name: string; service: KmsService }[] = [];
  let counting: EncryptionMetrics | undefined;
  const metrics: EncryptionMetricsOf = () => counting;
  const providers = new Map<string, PrefixedTransformer[]>();
  for (const entry of config.resources ?? []) {
    const own = (entry.providers ?? []).map((provider) => {
      if (provider.kms) return kmsProvider(provider.kms, kms, metrics);
      return providerOf(provider, metrics);
    });
    for (const name of entry.resources ?? []) providers.set(name, [...(providers.get(name) ?? []), ...own]);
  }
  const transformers = new Map([...providers].map(([name, own]) => [name, firstWrites(own, metrics)]));
  const transformerFor: TransformerFor = ({ group, resource }) =>
    transformers.get(group === "" ? resource : `${resource}.${group}`);
  return {
    transformerFor,
    kms,
    countIn(wanted) {
      counting = wanted;
    },
  };
}

function kmsProvider(
  options: KmsOptions,
  services: { name: string; service: KmsService }[],
  metrics: EncryptionMetricsOf,
): PrefixedTransformer {
  const { name = "", endpoint = "" } = options;
  const service = newKmsService(endpoint, timeoutOf(options));
  services.push({ name, service });
  return envelopeProvider({ name, service, cacheSize: options.cachesize ?? defaultCacheSize, metrics });
}

/** @throws Error when the timeout is not a Go duration */
function timeoutOf({ timeout }: KmsOptions): number {
  const text = timeout ?? defaultTimeout;
  const milliseconds = parseDuration(String(text));
  if (milliseconds === undefined) throw new Error(`time: invalid duration ${JSON.stringify(text)}`);
  return milliseconds;
}

function providerOf(provider: Provider, metrics: EncryptionMetricsOf): PrefixedTransformer {
  // Cast: validation accepts no other provider, and KMS is handled by the caller.
  const name = Object.keys(provider)[0] as CipherName | "identity";
  if (name === "identity") return identityProvider;
  const keys = (provider[name]?.keys ?? []).map(
    (key): EncryptionKey => ({ name: key.name!, secret: Buffer.from(key.secret!, "base64") }),
  );
  return encryptionProvider(name, keys, metrics);
}

function validate({ resources }: Configuration): FieldError[] {
  const entries = listOf(resources);
  if (entries.length === 0) return [required("resources", "at least one resources is required")];
  return entries.flatMap((entry, i) => {
    const path = index("resources", i);
    const errors: FieldError[] = [];
    for (const field of ["resources", "providers"] as const) {
      const at = child(path, field);
      if (listOf(entry?.[field]).length === 0) errors.push(required(at, `at least one ${at} is required`));
    }
    const providers = listOf<Provider>(entry?.providers);
    return [...errors, ...providers.flatMap((provider, j) => validateProvider(provider, index(child(path, "providers"), j)))];
  });
}

function validateProvider(provider: Provider, path: string): FieldError[] {
  const names = Object.keys(provider ?? {});
  const [name] = names as ProviderName[]; // cast: checked in the next line
  if (name === undefined || !providerNames.includes(name)) {
    return [
      invalidValue(
        path,
        name ?? "",
        "provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity",
      ),
    ];
  }
  if (names.length > 1) {
    const detail = "more than one provider specified in a single element, should split into different list elements";
    return [invalidValue(path, names.join(","), detail)];
  }
  if (name === "identity") return [];
  if (name === "kms") return validateKms(provider.kms ?? {}, child(path, "kms"));
  const at = child(child(path, name), "keys");
  const keys = listOf<Key>(provider[name]?.keys);
  if (keys.length === 0) return [required(at, "at least one keys is required")];
  return keys.flatMap((key, i) => validateKey(key, index(at, i), keySizes[name]));
}

function validateKms(kms: KmsOptions, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (!kms.name) errors.push(required(child(path, "name"), "name is a mandatory field for a provider"));
  if (timeoutOf(kms) <= 0) {
    errors.push(
      invalidValue(child(path, "timeout"), new GoText(formatDuration(timeoutOf(kms))), "timeout should be a positive value"),
    );
  }
  errors.push(...validateEndpoint(kms.endpoint ?? "", child(path, "endpoint")));
  if (kms.cachesize === 0) {
    const detail = "cachesize should be a positive value, or negative to disable";
    errors.push(invalidValue(child(path, "cachesize"), 0, detail));
  }
  return errors;
}

function validateEndpoint(endpoint: string, path: string): FieldError[] {
  if (endpoint === "") return [invalidValue(path, "", "endpoint is a mandatory field for a kms")];
  let scheme = "";
  try {
    scheme = new URL(endpoint).protocol.slice(0, -1);
  } catch {
    // Go parses text without a scheme as a path.
  }
  if (scheme === "unix") return [];
  return [invalidValue(path, endpoint, `unsupported scheme ${JSON.stringify(scheme)} for KMS provider, only unix is supported`)];
}

function validateKey(key: Key | null, path: string, sizes: readonly number[]): FieldError[] {
  const errors: FieldError[] = [];
  if (!key?.name) errors.push(required(child(path, "name"), "name is a mandatory field for a key"));
  const at = child(path, "secret");
  const secret = key?.secret;
  if (!secret) return [...errors, required(at, "secret is a mandatory field for a key")];
  const bytes = typeof secret === "string" ? Buffer.from(secret, "base64") : undefined;
  // Buffer.from skips invalid characters: compare with the re-encoded text.
  if (bytes?.toString("base64") !== secret) {
    return [...errors, invalidValue(at, "REDACTED", "secrets must be base64 encoded")];
  }
  if (!sizes.includes(bytes.length)) {
    const detail = `secret is not of the expected length, got ${bytes.length}, expected one of [${sizes.join(" ")}]`;
    errors.push(invalidValue(at, "REDACTED", detail));
  }
  return errors;
}

function listOf<T = { resources?: unknown; providers?: unknown }>(value: unknown): T[] {
  return Array.isArray(value) ? value : [];
}
