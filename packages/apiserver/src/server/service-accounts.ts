/** Keys, issuer and object lookup of service-account tokens, from the configuration and the stores. */
import { messageOf } from "@coxswain/apimachinery/objects/errors/message";
import { isNotFound } from "@coxswain/apimachinery/objects/errors/predicates";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import type { ServiceAccountGetter } from "../authentication/service-account.ts";
import { readSigningKey, readVerificationKeys, type VerificationKey } from "../authentication/service-account-keys.ts";
import { type IssuerDocuments, issuerDocuments, newTokenIssuer } from "../authentication/token-issuer.ts";
import type { ApiserverConfig } from "../config.ts";
import type { RegistryServices, TokenIssuer } from "../registry/generic/resource.ts";

/** The keys of --service-account-key-file, by default the TLS key. */
export function serviceAccountKeys({ flags }: ApiserverConfig): VerificationKey[] {
  const files = flags["service-account-key-file"];
  if (files.length > 0) return readVerificationKeys(files);
  return flags["tls-private-key-file"] === "" ? [] : readVerificationKeys([flags["tls-private-key-file"]]);
}

/** @returns undefined without an issuer or a signing key: tokens cannot be requested then */
export function tokenIssuer({ flags, apiAudiences }: ApiserverConfig): TokenIssuer | undefined {
  const [issuer] = flags["service-account-issuer"];
  const keyFile = flags["service-account-signing-key-file"];
  if (issuer === undefined || keyFile === "") return undefined;
  const longestMs = flags["service-account-max-token-expiration"];
  return newTokenIssuer({
    issuer,
    defaultAudiences: apiAudiences,
    signingKey: readSigningKey(keyFile),
    maxExpirationSeconds: longestMs > 0 ? longestMs / 1000 : undefined,
    extendExpiration: flags["service-account-extend-token-expiration"],
  });
}

/** The OpenID discovery documents; undefined without an issuer, or when they cannot be created, which is logged. */
export function issuerDocumentsOf(
  { flags, advertiseAddress }: ApiserverConfig,
  keys: readonly VerificationKey[],
  log: Logger,
): IssuerDocuments | undefined {
  const [issuer] = flags["service-account-issuer"];
  if (issuer === undefined) return undefined;
  const host = flags["external-hostname"] || advertiseAddress;
  const jwksUri =
    flags["service-account-jwks-uri"] ||
    `https://${host.includes(":") ? `[${host}]` : host}:${flags["secure-port"]}/openid/v1/jwks`;
  try {
    return issuerDocuments({ issuer, jwksUri, keys });
  } catch (err) {
    log.warn("the discovery documents of service account tokens are not served", { reason: messageOf(err) });
    return undefined;
  }
}

/** Reads from the cache first, unless `fresh`: a token may be newer than the cached state. */
export function storeGetter(storeOf: RegistryServices["store"]): ServiceAccountGetter {
  return {
    async get(kind, namespace, name, fresh) {
      try {
        const entry = await storeOf("", kind).get(namespace, name, fresh ? {} : { minimumRevision: 0 });
        return entry.object();
      } catch (err) {
        if (isNotFound(err)) return undefined;
        throw err;
      }
    },
  };
}
