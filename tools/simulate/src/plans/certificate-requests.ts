import { newCertificateRequest } from "@coxswain/apimachinery/serving/certificates";

/** `spec.request` of a node's and of a person's request. */
export interface CertificateRequests {
  readonly node: string;
  readonly person: string;
}

/** Made before a simulation, because keys are generated at random. */
export async function newCertificateRequests(): Promise<CertificateRequests> {
  const requestOf = async (commonName: string, organizations: string[]): Promise<string> =>
    Buffer.from((await newCertificateRequest({ commonName, organizations })).csrPem).toString("base64");
  return { node: await requestOf("system:node:edge-0", ["system:nodes"]), person: await requestOf("jane", ["sailors"]) };
}

export const asKubelet = {
  signerName: "kubernetes.io/kube-apiserver-client-kubelet",
  usages: ["digital signature", "key encipherment", "client auth"],
};
export const asPerson = { signerName: "kubernetes.io/kube-apiserver-client", usages: ["client auth"] };
