/**
 * Signs service-account tokens and generates the OpenID discovery documents to verify them.
 * Source: pkg/serviceaccount/jwt.go, openidmetadata.go
 */
import { CompactSign } from "jose";
import { keySet, type VerificationKey } from "./service-account-keys.ts";

interface TokenIssuerOptions {
  issuer: string;
  defaultAudiences: readonly string[];
  signingKey: VerificationKey;
  maxExpirationSeconds: number | undefined;
  extendExpiration: boolean;
}

/** Signs tokens for the TokenRequest subresource. */
interface TokenSigner extends Omit<TokenIssuerOptions, "signingKey"> {
  /** @param claims without "iss", which is added. @returns compact serialization */
  sign(claims: Record<string, unknown>): Promise<string>;
}

export function newTokenIssuer(options: TokenIssuerOptions): TokenSigner {
  const { key, id, algorithm } = options.signingKey;
  return {
    issuer: options.issuer,
    defaultAudiences: options.defaultAudiences,
    maxExpirationSeconds: options.maxExpirationSeconds,
    extendExpiration: options.extendExpiration,
    sign: (claims) =>
      new CompactSign(Buffer.from(JSON.stringify({ ...claims, iss: options.issuer })))
        .setProtectedHeader({ alg: algorithm, kid: id })
        .sign(key),
  };
}

export interface IssuerDocuments {
  /** /.well-known/openid-configuration */
  readonly configuration: string;
  /** /openid/v1/jwks */
  readonly keySet: string;
}

/**
 * Discovery documents of the issuer.
 * @throws Error when the issuer is not an https URL, as OpenID Connect requires; the server then serves no documents.
 */
export function issuerDocuments(options: { issuer: string; jwksUri: string; keys: readonly VerificationKey[] }): IssuerDocuments {
  const url = new URL(options.issuer);
  if (url.protocol !== "https:" || url.search !== "" || url.hash !== "") {
    throw new Error(`issuer URL ${JSON.stringify(options.issuer)} must use https scheme and have neither query nor fragment`);
  }
  return {
    configuration: JSON.stringify({
      issuer: options.issuer,
      jwks_uri: options.jwksUri,
      response_types_supported: ["id_token"],
      subject_types_supported: ["public"],
      id_token_signing_alg_values_supported: [...new Set(options.keys.map((key) => key.algorithm))],
    }),
    keySet: JSON.stringify(keySet(options.keys)),
  };
}
