import { duration, string } from "@coxswain/apimachinery/flags/types";

/** Who signs certificates and tokens. */

export const signingFlags = {
  "cluster-signing-cert-file": string({
    help: "PEM file with the certificate that issues cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
  }),
  "cluster-signing-duration": duration({
    default: "8760h0m0s",
    help: "The longest validity of signed certificates. A request may ask for less with spec.expirationSeconds.",
  }),
  "cluster-signing-key-file": string({
    help: "PEM file with the private key that signs cluster-scoped certificates. If given, no more specific --cluster-signing-* flag may be.",
  }),
  "cluster-signing-kube-apiserver-client-cert-file": string({
    help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-kube-apiserver-client-key-file": string({
    help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-kubelet-client-cert-file": string({
    help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-kubelet-client-key-file": string({
    help: "PEM file with the private key for the signer kubernetes.io/kube-apiserver-client-kubelet. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-kubelet-serving-cert-file": string({
    help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-kubelet-serving-key-file": string({
    help: "PEM file with the private key for the signer kubernetes.io/kubelet-serving. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-legacy-unknown-cert-file": string({
    help: "PEM file with the certificate that issues certificates of the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "cluster-signing-legacy-unknown-key-file": string({
    help: "PEM file with the private key for the signer kubernetes.io/legacy-unknown. If given, --cluster-signing-{cert,key}-file must not be.",
  }),
  "experimental-cluster-signing-duration": duration({
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
