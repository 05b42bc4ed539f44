import { duration, string } from "@coxswain/apimachinery/flags/types";

/** Flags for signing certificates and tokens. */

/** The key pair of all signers. */
export const sharedSigningSettings = {
  cert: string({
    flag: "cluster-signing-cert-file",
    help: "PEM file with the certificate that issues cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
  }),
  key: string({
    flag: "cluster-signing-key-file",
    help: "PEM file with the private key that signs cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
  }),
};

/** The key pair of each built-in signer, in the order in which they are checked. */
export const signerSettings = {
  "kubernetes.io/kubelet-serving": {
    cert: string({
      flag: "cluster-signing-kubelet-serving-cert-file",
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    key: string({
      flag: "cluster-signing-kubelet-serving-key-file",
      help: "PEM file with the private key for the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
  },
  "kubernetes.io/kube-apiserver-client-kubelet": {
    cert: string({
      flag: "cluster-signing-kubelet-client-cert-file",
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    key: string({
      flag: "cluster-signing-kubelet-client-key-file",
      help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
  },
  "kubernetes.io/kube-apiserver-client": {
    cert: string({
      flag: "cluster-signing-kube-apiserver-client-cert-file",
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    key: string({
      flag: "cluster-signing-kube-apiserver-client-key-file",
      help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
  },
  "kubernetes.io/legacy-unknown": {
    cert: string({
      flag: "cluster-signing-legacy-unknown-cert-file",
      help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
    key: string({
      flag: "cluster-signing-legacy-unknown-key-file",
      help: "PEM file with the private key for the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
    }),
  },
};

export const signingDurationSettings = {
  durationMs: duration({
    flag: "cluster-signing-duration",
    default: "8760h0m0s",
    help: "The longest validity of signed certificates. A request may specify less with spec.expirationSeconds.",
  }),
  /** Applies when --cluster-signing-duration has its default value. */
  formerDurationMs: duration({
    flag: "experimental-cluster-signing-duration",
    default: "8760h0m0s",
    hidden: true,
    deprecated: "will be removed in a future version.",
    help: "The former name of --cluster-signing-duration.",
  }),
};

export const serviceAccountFlags = {
  "service-account-private-key-file": string({
    help: "File with the PEM-encoded private RSA or ECDSA key that signs service account tokens.",
  }),
};
