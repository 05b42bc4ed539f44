import { rule } from "@coxswain/apimachinery/flags/rules";
import { bool, duration, mapStringString, string, stringSlice } from "@coxswain/apimachinery/flags/types";

/** Authentication and authorization of requests. */

const shortestTokenMs = 3_600_000;
const longestTokenMs = 2 ** 32 * 1000;

export const authenticationFlags = {
  "anonymous-auth": bool({
    default: true,
    help: "Enables anonymous requests. Requests that no other method rejects are treated as anonymous: user system:anonymous, group system:unauthenticated.",
  }),
  "api-audiences": stringSlice({
    help: "Identifiers of the API. A service account token is valid when it is bound to at least one of them. If only --service-account-issuer is given, it is the issuer URL.",
  }),
  "authentication-token-webhook-cache-ttl": duration({
    default: "2m0s",
    help: "How long answers of the token webhook are kept.",
  }),
  "authentication-token-webhook-config-file": string({
    help: "File with the webhook configuration for token authentication in kubeconfig format. The server queries the remote service to validate bearer tokens.",
  }),
  "authentication-token-webhook-version": string({
    default: "v1beta1",
    help: "The version of authentication.k8s.io TokenReview to send to and expect from the webhook.",
  }),
  "client-ca-file": string({
    help: "If set, a request with a client certificate signed by one of the authorities in this file is authenticated as the certificate's CommonName.",
  }),
  "enable-bootstrap-token-auth": bool({
    help: "Allows secrets of type 'bootstrap.kubernetes.io/token' in the 'kube-system' namespace to be used for TLS bootstrapping authentication.",
  }),
  "oidc-ca-file": string({
    help: "If set, the OpenID server's certificate is checked against the authorities in this file, otherwise against the host's root set.",
  }),
  "oidc-client-id": string({
    help: "The client ID of the OpenID Connect client; must be set if oidc-issuer-url is.",
  }),
  "oidc-groups-claim": string({
    help: "If given, the name of the OpenID Connect claim that holds user groups: a string or a list of strings.",
  }),
  "oidc-groups-prefix": string({
    help: "If given, it is put before all groups, so that they do not clash with other methods' groups.",
  }),
  "oidc-issuer-url": string({
    help: "The URL of the OpenID issuer, only HTTPS. If set, it is used to verify OIDC JSON Web Tokens.",
  }),
  "oidc-required-claim": mapStringString({
    help: "A key=value pair that an ID token must have as a claim. Repeat the flag for several claims.",
  }),
  "oidc-signing-algs": stringSlice({
    default: ["RS256"],
    help: "Allowed JOSE asymmetric signing algorithms. Supported values: RS256, RS384, RS512, ES256, ES384, ES512, PS256, PS384, PS512.",
  }),
  "oidc-username-claim": string({
    default: "sub",
    help: "The OpenID claim to use as the user name. Claims other than 'sub' are not guaranteed to be unique and immutable.",
  }),
  "oidc-username-prefix": string({
    help: "If given, it is put before all user names. Without it, names of claims other than 'email' are prefixed by the issuer URL. '-' means no prefix.",
  }),
  "requestheader-allowed-names": stringSlice({
    help: "Common names of client certificates that may give user names in the headers of --requestheader-username-headers. Empty: any certificate of --requestheader-client-ca-file.",
  }),
  "requestheader-client-ca-file": string({
    help: "Root certificates that client certificates of incoming requests are checked against before user names in headers are trusted. WARNING: do not rely on authorization having been done for them already.",
  }),
  "requestheader-extra-headers-prefix": stringSlice({
    help: "Prefixes of request headers to read. X-Remote-Extra- is suggested.",
  }),
  "requestheader-group-headers": stringSlice({
    help: "Request headers to read groups from. X-Remote-Group is suggested.",
  }),
  "requestheader-username-headers": stringSlice({
    help: "Request headers to read user names from. X-Remote-User is common.",
  }),
  "service-account-api-audiences": stringSlice({
    hidden: true,
    deprecated: "will be removed in a future version.",
    wired: false,
    help: "The former name of --api-audiences.",
  }),
  "service-account-extend-token-expiration": bool({
    default: true,
    help: "Extends the life of projected service account tokens, which eases the step from legacy tokens. Then the given expiration is no limit, up to a year.",
  }),
  "service-account-issuer": stringSlice({
    help: "Identifier of the issuer of service account tokens, put into their 'iss' claim: a string or URI. Repeat the flag for several; the first one signs, all are accepted.",
  }),
  "service-account-jwks-uri": string({
    must: rule(
      "an https URL",
      (uri) => uri === "" || uri.startsWith("https://"),
      (uri) => `service-account-jwks-uri requires https scheme, parsed as: ${uri}`,
    ),
    help: "Overrides the URI of the JSON Web Key Set in the discovery document at /.well-known/openid-configuration.",
  }),
  "service-account-key-file": stringSlice({
    help: "File with PEM-encoded RSA or ECDSA private or public keys that verify service account tokens. It may hold several keys, and the flag may be repeated. If absent, --tls-private-key-file is used.",
  }),
  "service-account-lookup": bool({
    default: true,
    help: "If true, service account tokens are only valid while their account (and secret or pod) exists in etcd.",
  }),
  "service-account-max-token-expiration": duration({
    must: rule(
      "0, or 1h to 2^32 seconds",
      (ms) => ms === 0 || (ms >= shortestTokenMs && ms <= longestTokenMs),
      () => "the service-account-max-token-expiration must be between 1 hour and 2^32 seconds",
    ),
    help: "The longest validity of a token that the server issues. A longer request is answered with a token of this validity.",
  }),
  "service-account-signing-key-file": string({
    help: "Path to the file with the private key that signs service account tokens.",
  }),
  "token-auth-file": string({
    help: "If set, the file with the tokens that authenticate requests to the secure port.",
  }),
};

export const authorizationFlags = {
  "authorization-mode": stringSlice({
    default: ["AlwaysAllow"],
    help: "Authorization plugins in the order they are consulted. Known ones: AlwaysAllow,AlwaysDeny,ABAC,Webhook,RBAC,Node.",
  }),
  "authorization-policy-file": string({
    help: "File with the authorization policy, one JSON object a line, for --authorization-mode=ABAC.",
  }),
  "authorization-webhook-cache-authorized-ttl": duration({
    default: "5m0s",
    help: "How long 'authorized' answers of the webhook authorizer are kept.",
  }),
  "authorization-webhook-cache-unauthorized-ttl": duration({
    default: "30s",
    help: "How long 'unauthorized' answers of the webhook authorizer are kept.",
  }),
  "authorization-webhook-config-file": string({
    help: "File with the webhook configuration in kubeconfig format, for --authorization-mode=Webhook.",
  }),
  "authorization-webhook-version": string({
    default: "v1beta1",
    help: "The version of authorization.k8s.io SubjectAccessReview to send to and expect from the webhook.",
  }),
};
