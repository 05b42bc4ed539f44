/**
 * Registry credentials from exec plugins, configured by --image-credential-provider-config. A plugin gets the image on stdin
 * and writes credentials to stdout. Responses are cached for the duration they specify.
 * Source: pkg/credentialprovider/plugin, k8s.io/kubelet config/v1alpha1 and credentialprovider/v1alpha1; KEP-2133
 */

import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ConfigError } from "@coxswain/apimachinery/flags/run-main";
import { parseYaml } from "@coxswain/apimachinery/objects/codec/yaml";
import { isJsonObject } from "@coxswain/apimachinery/objects/meta/json-value";
import { parseDuration } from "@coxswain/apimachinery/objects/meta/time";
import { parseImageReference } from "@coxswain/apimachinery/objects/validation/image-reference";
import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { fitsImage, type Login } from "./image-credentials.ts";

export interface CredentialProviders {
  /** Never rejects: failures of a plugin are logged, and the image is pulled without its credentials. */
  loginsFor(image: string): Promise<Login[]>;
}

interface CredentialProviderOptions {
  readonly configFile: string;
  readonly binDir: string;
  readonly clock: Clock;
  readonly log: Logger;
}

interface Provider {
  readonly name: string;
  readonly matchImages: readonly string[];
  readonly defaultCacheMs: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

const pluginVersion = "credentialprovider.kubelet.k8s.io/v1alpha1";
const timeoutMs = 60_000;
const longestAnswer = 1024 * 1024;

/** @throws ConfigError when the file cannot be read or is invalid, or a plugin executable is missing */
export function openCredentialProviders(options: CredentialProviderOptions): CredentialProviders {
  const { binDir, clock, log } = options;
  const providers = readProviders(options.configFile);
  for (const { name } of providers) {
    try {
      statSync(join(binDir, name));
    } catch (err) {
      throw new ConfigError(`plugin binary executable ${join(binDir, name)} did not exist`, { cause: err });
    }
  }
  const kept = new Map<string, { logins: Login[]; untilMs: number }>();
  const requests = new Map<string, Promise<Login[]>>();

  const known = (provider: Provider, image: string): Login[] | undefined => {
    for (const type of ["Image", "Registry", "Global"]) {
      const found = kept.get(keyOf(provider, type, image));
      if (found !== undefined && clock.monotonic() < found.untilMs) return found.logins;
    }
    return undefined;
  };
  const runProvider = async (provider: Provider, image: string): Promise<Login[]> => {
    const answer = await run(provider, binDir, image);
    const cacheMs = answer.cacheMs ?? provider.defaultCacheMs;
    if (cacheMs > 0) {
      kept.set(keyOf(provider, answer.cacheKeyType, image), { logins: answer.logins, untilMs: clock.monotonic() + cacheMs });
    }
    return answer.logins;
  };
  return {
    async loginsFor(image) {
      const found = providers
        .filter(({ matchImages }) => matchImages.some((pattern) => fitsImage(pattern, image)))
        .map(async (provider) => {
          const before = known(provider, image);
          if (before !== undefined) return before;
          // Concurrent requests for the same image share one execution.
          const key = keyOf(provider, "Image", image);
          const attempt = requests.get(key) ?? runProvider(provider, image).finally(() => requests.delete(key));
          requests.set(key, attempt);
          return attempt.catch((err: unknown) => {
            log.error("Failed getting credential from external registry credential provider", err, { plugin: provider.name });
            return [];
          });
        });
      return (await Promise.all(found)).flat();
    },
  };
}

function keyOf({ name }: Provider, type: string, image: string): string {
  const about = type === "Image" ? image : type === "Registry" ? (parseImageReference(image)?.domain ?? "") : "";
  return JSON.stringify([name, type, about]);
}

/** @throws ConfigError when the file cannot be read or is invalid */
function readProviders(path: string): Provider[] {
  let file: unknown;
  try {
    file = parseYaml(readFileSync(path, "utf8"));
  } catch (err) {
    throw new ConfigError(`unable to read external registry credential provider configuration from "${path}"`, { cause: err });
  }
  const { apiVersion, kind, providers } = isJsonObject(file) ? file : {};
  if (apiVersion !== "kubelet.config.k8s.io/v1alpha1" || kind !== "CredentialProviderConfig") {
    throw new ConfigError(`failed to decode ${path}: no CredentialProviderConfig of kubelet.config.k8s.io/v1alpha1`);
  }
  const given: readonly unknown[] = Array.isArray(providers) ? providers : [];
  const problems = given.length === 0 ? ["providers: Required value: at least 1 item in plugins is required"] : [];
  const checked = given.map((provider) => providerOf(isJsonObject(provider) ? provider : {}, problems));
  if (problems.length > 0) throw new ConfigError(`failed to validate config ${path}: ${problems.join(", ")}`);
  return checked;
}

function providerOf(provider: Record<string, unknown>, problems: string[]): Provider {
  const { name = "", matchImages = [], defaultCacheDuration, apiVersion, args = [], env = [] } = provider;
  const text = String(name);
  if (text === "") problems.push("providers.name: Required value: name is required");
  if (text.includes("/")) problems.push("providers.name: Invalid value: provider name cannot contain '/'");
  if (text.includes(" ")) problems.push("providers.name: Invalid value: provider name cannot contain spaces");
  if (text === "." || text === "..") problems.push(`providers.name: Invalid value: provider name cannot be '${text}'`);
  if (apiVersion !== pluginVersion)
    problems.push(`providers.apiVersion: Unsupported value: "${String(apiVersion)}": supported values: "${pluginVersion}"`);
  if (!Array.isArray(matchImages) || matchImages.length === 0) {
    problems.push("providers.matchImages: Required value: at least 1 item in matchImages is required");
  }
  const cacheMs = parseDuration(String(defaultCacheDuration));
  if (cacheMs === undefined) problems.push("providers.defaultCacheDuration: Required value: defaultCacheDuration is required");
  else if (cacheMs < 0)
    problems.push("providers.defaultCacheDuration: Invalid value: defaultCacheDuration must be greater than or equal to 0");
  const variables: { name?: unknown; value?: unknown }[] = Array.isArray(env) ? env : [];
  return {
    name: text,
    matchImages: (Array.isArray(matchImages) ? matchImages : []).map(String),
    defaultCacheMs: cacheMs ?? 0,
    args: (Array.isArray(args) ? args : []).map(String),
    env: Object.fromEntries(variables.map(({ name: key, value }) => [String(key), String(value)])),
  };
}

interface Answer {
  readonly cacheKeyType: string;
  readonly cacheMs: number | undefined;
  readonly logins: Login[];
}

/** @throws Error when the plugin fails, times out or writes an invalid response */
async function run(provider: Provider, binDir: string, image: string): Promise<Answer> {
  const request = { kind: "CredentialProviderRequest", apiVersion: pluginVersion, image };
  const child = spawn(join(binDir, provider.name), provider.args, {
    env: { ...process.env, ...provider.env },
    stdio: ["pipe", "pipe", "ignore"],
    timeout: timeoutMs,
    killSignal: "SIGKILL",
  });
  const chunks: Buffer[] = [];
  let size = 0;
  child.stdout.on("data", (chunk: Buffer) => {
    size += chunk.length;
    if (size <= longestAnswer) chunks.push(chunk);
    else child.kill("SIGKILL");
  });
  child.stdin.on("error", () => {}); // the plugin may exit without reading its input
  child.stdin.end(JSON.stringify(request));
  await new Promise<void>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      if (code === 0) resolve();
      else
        reject(
          new Error(
            `error execing credential provider plugin ${provider.name} for image ${image}: ${signal ?? `exit status ${code}`}`,
          ),
        );
    });
  });
  // The plugin may have ended before it could be killed.
  if (size > longestAnswer) throw new Error(`credential provider plugin ${provider.name} wrote more than ${longestAnswer} bytes`);
  return answerOf(Buffer.concat(chunks).toString("utf8"));
}

/** @throws Error when the text is not a valid CredentialProviderResponse */
export function answerOf(text: string): Answer {
  const answer: unknown = JSON.parse(text);
  const { kind, apiVersion, cacheKeyType, cacheDuration, auth } = isJsonObject(answer) ? answer : {};
  if (kind !== "CredentialProviderResponse" || apiVersion !== pluginVersion) {
    throw new Error(
      `the plugin answered ${String(kind)} of ${String(apiVersion)}, not CredentialProviderResponse of ${pluginVersion}`,
    );
  }
  if (cacheKeyType !== "Image" && cacheKeyType !== "Registry" && cacheKeyType !== "Global") {
    throw new Error(`credential provider plugin did not return a valid cacheKeyType: "${String(cacheKeyType)}"`);
  }
  const entries = typeof auth === "object" && auth !== null ? Object.entries(auth) : [];
  return {
    cacheKeyType,
    cacheMs: cacheDuration === undefined || cacheDuration === null ? undefined : parseDuration(String(cacheDuration)),
    logins: entries.map(
      ([pattern, { username = "", password = "" } = {}]: [string, { username?: string; password?: string }]) => ({
        pattern,
        auth: { username, password, identityToken: "" },
      }),
    ),
  };
}
