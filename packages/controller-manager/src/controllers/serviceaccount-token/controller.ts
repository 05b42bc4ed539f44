import { type Controller, done, type Result } from "@coxswain/apimachinery/controller/controller";
import { enqueueMapped, enqueueSelf } from "@coxswain/apimachinery/controller/sources";
import type { SharedInformer } from "@coxswain/apimachinery/informers/shared-informer";
import { hasCause, isAlreadyExists, isConflict, isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import { deepEqual } from "@coxswain/apimachinery/objects/meta/deep-equal";
import { generateName } from "@coxswain/apimachinery/objects/meta/names";
import { type ObjectKey, splitKey, toKey } from "@coxswain/apimachinery/objects/meta/object-key";
import type { Secret, ServiceAccount } from "@coxswain/apimachinery/objects/schema/kinds/core/v1";
import { secrets, serviceAccounts } from "@coxswain/apimachinery/objects/schema/kinds/resources";
import type { ControllerContext } from "../../controller-context.ts";
import { defineController } from "../../define-controller.ts";
import { type LegacyTokenSigner, newLegacyTokenSigner } from "./legacy-token.ts";

/**
 * tokens-controller: creates a token Secret for every ServiceAccount, and populates token Secrets as long as their account
 * exists.
 * Watches ServiceAccounts (own key) and Secrets of type kubernetes.io/service-account-token (key of their account); writes
 * both. Disabled without --service-account-private-key-file.
 * Source: pkg/controller/serviceaccount/tokens_controller.go
 */
export function newServiceAccountTokenController(base: ControllerContext): Controller | undefined {
  const { serviceAccountKey } = base.config;
  if (serviceAccountKey === undefined) {
    base.log.warn("serviceaccount-token controller is off: no --service-account-private-key-file was given");
    return undefined;
  }
  const tokenSecrets = base.informers.for<Secret>(secrets, { fieldSelector: `type=${tokenType}` });
  tokenSecrets.addIndex(accountIndex, accountKeys);
  const ctx: TokenContext = {
    ...base,
    accounts: base.informers.for<ServiceAccount>(serviceAccounts),
    tokenSecrets,
    signer: newLegacyTokenSigner(serviceAccountKey),
    created: new Map(),
  };
  tokenSecrets.addHandler({
    deleted({ metadata }) {
      const uid = metadata.annotations?.[uidAnnotation] ?? "";
      if (ctx.created.get(uid)?.name === metadata.name) ctx.created.delete(uid);
    },
  });
  return defineController(ctx, {
    name: "serviceaccount_tokens_service",
    sources: [enqueueSelf(ctx.accounts), enqueueMapped(tokenSecrets, accountKeys)],
    reconcile,
    workers: ctx.config.concurrency.serviceAccountToken,
    maxRetries: 10,
  });
}

interface TokenContext extends ControllerContext {
  readonly accounts: SharedInformer<ServiceAccount>;
  readonly tokenSecrets: SharedInformer<Secret>;
  readonly signer: LegacyTokenSigner;
  /** The Secret created for an account, by account uid, until the cache shows it and the account's reference to it. */
  readonly created: Map<string, CreatedSecret>;
}

interface CreatedSecret {
  readonly name: string;
  /** Monotonic ms. */
  readonly atMs: number;
}

const tokenType = "kubernetes.io/service-account-token";
const nameAnnotation = "kubernetes.io/service-account.name";
const uidAnnotation = "kubernetes.io/service-account.uid";
const accountIndex = "service-account";
/** The cache is stale. */
const staleRetryMs = 200;
/** After this time the API server is asked for a created Secret that the cache does not show. */
const unseenMs = 5_000;

function accountKeys({ metadata }: Secret): ObjectKey[] {
  const name = metadata.annotations?.[nameAnnotation];
  return name === undefined ? [] : [toKey(metadata.namespace, name)];
}

async function reconcile(ctx: TokenContext, key: ObjectKey, signal: AbortSignal): Promise<Result> {
  const account = ctx.accounts.lister.get(key) ?? (await getLive(ctx, key, signal));
  const own: Secret[] = [];
  for (const secret of ctx.tokenSecrets.lister.byIndex(accountIndex, key)) {
    if (account !== undefined && belongsTo(secret, account)) own.push(secret);
    else await deleteSecret(ctx, secret, signal);
  }
  if (account === undefined) return done;
  for (const secret of own) await populate(ctx, secret, account, signal);
  if (account.metadata.deletionTimestamp) return done;
  return ensureReferenced(ctx, account, own, signal);
}

/** A missing account may only be missing in the cache, so it is read from the API server before its Secrets are deleted. */
async function getLive({ client }: ControllerContext, key: ObjectKey, signal: AbortSignal): Promise<ServiceAccount | undefined> {
  try {
    return await client.get<ServiceAccount>(serviceAccounts, splitKey(key), { signal });
  } catch (err) {
    if (isNotFound(err)) return undefined;
    throw err;
  }
}

/** A manually created Secret may omit the uid. */
function belongsTo({ metadata }: Secret, account: ServiceAccount): boolean {
  const uid = metadata.annotations?.[uidAnnotation];
  return uid === undefined || uid === "" || uid === account.metadata.uid;
}

/**
 * Pure: adds the missing data and annotations of a token Secret.
 * @returns undefined when unchanged
 */
function withToken(secret: Secret, account: ServiceAccount, rootCa: string | undefined, sign: () => string): Secret | undefined {
  const base64 = (text: string): string => Buffer.from(text).toString("base64");
  const data = { ...secret.data };
  if (rootCa !== undefined) data["ca.crt"] = base64(rootCa);
  if (!data["namespace"]) data["namespace"] = base64(secret.metadata.namespace ?? "");
  if (!data["token"]) data["token"] = base64(sign());
  const annotations = {
    ...secret.metadata.annotations,
    [nameAnnotation]: account.metadata.name ?? "",
    [uidAnnotation]: account.metadata.uid ?? "",
  };
  if (deepEqual(data, secret.data) && deepEqual(annotations, secret.metadata.annotations)) return undefined;
  return { ...secret, metadata: { ...secret.metadata, annotations }, data };
}

async function populate(ctx: TokenContext, secret: Secret, account: ServiceAccount, signal: AbortSignal): Promise<void> {
  const { signer } = ctx;
  const changed = withToken(secret, account, ctx.config.rootCa, () => signer.sign(claimsOf(secret.metadata.name ?? "", account)));
  if (changed === undefined) return;
  await ctx.client.update<Secret>(secrets, changed, { signal }).catch((err) => {
    if (!isNotFound(err)) throw err;
  });
}

function claimsOf(secretName: string, { metadata }: ServiceAccount) {
  return { namespace: metadata.namespace ?? "", secretName, accountName: metadata.name ?? "", accountUid: metadata.uid ?? "" };
}

/**
 * Ensures that the account references one of its token Secrets, creating one if needed; drops references to deleted
 * token Secrets.
 */
async function ensureReferenced(
  ctx: TokenContext,
  account: ServiceAccount,
  own: readonly Secret[],
  signal: AbortSignal,
): Promise<Result> {
  const { created } = ctx;
  const { namespace, name = "", uid = "" } = account.metadata;
  const ownNames = new Set(own.map(({ metadata }) => metadata.name));
  const named = (account.secrets ?? []).some((reference) => ownNames.has(reference.name));
  if (named) {
    created.delete(uid);
    return done;
  }
  // Created earlier: either the cache shows neither the Secret nor the reference yet, or writing the reference failed.
  const pending = created.get(uid);
  if (pending !== undefined && (account.secrets ?? []).some((reference) => reference.name === pending.name)) {
    const leftMs = pending.atMs + unseenMs - ctx.clock.monotonic();
    if (leftMs > 0) return { requeueAfterMs: leftMs };
    if (await exists(ctx, namespace, pending.name, signal)) return { requeueAfterMs: unseenMs };
    created.delete(uid); // deleted while the watch was interrupted: no event tells of it
  }

  const live = await getLive(ctx, toKey(namespace, name), signal);
  if (live === undefined || live.metadata.uid !== uid) return done;
  if (live.metadata.resourceVersion !== account.metadata.resourceVersion) return { requeueAfterMs: staleRetryMs };
  const secretName = created.get(uid)?.name ?? (await createSecret(ctx, account, signal));
  if (secretName === undefined) return done;
  created.set(uid, { name: secretName, atMs: ctx.clock.monotonic() });
  // None of them is an own Secret's, see above.
  const lost = (reference: { name?: string }): boolean => reference.name?.startsWith(`${name}-token-`) === true;
  const kept = (live.secrets ?? []).filter((reference) => !lost(reference));
  try {
    await ctx.client.update<ServiceAccount>(serviceAccounts, { ...live, secrets: [...kept, { name: secretName }] }, { signal });
  } catch (err) {
    if (!isConflict(err) && !isNotFound(err)) throw err;
    return { requeueAfterMs: staleRetryMs };
  }
  return done;
}

async function exists(
  { client }: ControllerContext,
  namespace: string | undefined,
  name: string,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.get<Secret>(secrets, { namespace, name }, { signal });
    return true;
  } catch (err) {
    if (isNotFound(err)) return false;
    throw err;
  }
}

/** Creates a token Secret; undefined when the namespace is terminating. */
async function createSecret(ctx: TokenContext, account: ServiceAccount, signal: AbortSignal): Promise<string | undefined> {
  const { signer } = ctx;
  const { namespace, name = "" } = account.metadata;
  const secretName = generateName(`${name}-token-`);
  const empty: Secret = {
    apiVersion: "v1",
    kind: "Secret",
    metadata: { name: secretName, ...(namespace === undefined ? {} : { namespace }) },
    type: tokenType,
  };
  const secret = withToken(empty, account, ctx.config.rootCa, () => signer.sign(claimsOf(secretName, account))) ?? empty;
  try {
    await ctx.client.create<Secret>(secrets, secret, { signal });
    return secretName;
  } catch (err) {
    if (hasCause(err, "NamespaceTerminating")) return undefined;
    if (isAlreadyExists(err)) throw new Error("generated Secret name exists already", { cause: err });
    throw err;
  }
}

async function deleteSecret({ client }: ControllerContext, { metadata }: Secret, signal: AbortSignal): Promise<void> {
  const { namespace, name = "", uid } = metadata;
  const preconditions = uid === undefined ? {} : { preconditions: { uid } };
  await client.delete(secrets, { namespace, name }, { ...preconditions, signal }).catch((err) => {
    if (!isNotFound(err) && !isConflict(err)) throw err;
  });
}
