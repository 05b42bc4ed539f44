import type { Clock } from "@coxswain/apimachinery/process/clock/clock";
import type { Logger } from "@coxswain/apimachinery/process/logging/logger";
import { type WatchedCertificatePool, watchedCertificatePool } from "@coxswain/apimachinery/serving/authentication/x509";
import { type ProxyCertificate, watchedKeyPair, watchedProxyCertificate } from "../aggregation/proxy-certificate.ts";
import type { AuthenticationInfo } from "../bootstrap/authentication-info.ts";
import type { ApiserverConfig } from "../config.ts";

/** Certificates and authorities in files, which are read again when they change. */
export class WatchedCertificates {
  /** --client-ca-file */
  readonly clientCa: WatchedCertificatePool | undefined;
  /** --requestheader-client-ca-file */
  readonly requestHeaderCa: WatchedCertificatePool | undefined;
  /** --proxy-client-cert-file */
  readonly proxy: ProxyCertificate;
  /** --kubelet-client-certificate */
  readonly kubelet: ProxyCertificate;
  /** --etcd-certfile */
  readonly etcd: ProxyCertificate;
  readonly #flags: ApiserverConfig["flags"];
  #authoritiesChanged: () => void = () => {};

  /** @throws Error when a file cannot be read */
  constructor(flags: ApiserverConfig["flags"], clock: Clock, log: Logger) {
    const poolOf = (path: string): WatchedCertificatePool | undefined =>
      path === "" ? undefined : watchedCertificatePool(path, () => this.#authoritiesChanged(), clock);
    this.#flags = flags;
    this.clientCa = poolOf(flags["client-ca-file"]);
    this.requestHeaderCa = poolOf(flags["requestheader-client-ca-file"]);
    this.proxy = watchedProxyCertificate(flags["proxy-client-cert-file"], flags["proxy-client-key-file"], clock, log);
    const [kubeletCert, kubeletKey] = [flags["kubelet-client-certificate"], flags["kubelet-client-key"]];
    this.kubelet = watchedKeyPair("kubelets", kubeletCert, kubeletKey, clock, log);
    this.etcd = watchedKeyPair("etcd", flags["etcd-certfile"], flags["etcd-keyfile"], clock, log);
  }

  /** @param changed called when the authorities were read again; replaces the previous callback */
  onAuthorities(changed: () => void): void {
    this.#authoritiesChanged = changed;
  }

  /** Authorities and headers, published for other API servers that verify client certificates. */
  authenticationInfo(): AuthenticationInfo {
    const { clientCa, requestHeaderCa } = this;
    return {
      clientCa: clientCa?.pem,
      requestHeader: requestHeaderCa && {
        ca: requestHeaderCa.pem,
        allowedNames: this.#flags["requestheader-allowed-names"],
        usernameHeaders: this.#flags["requestheader-username-headers"],
        groupHeaders: this.#flags["requestheader-group-headers"],
        extraHeaderPrefixes: this.#flags["requestheader-extra-headers-prefix"],
      },
    };
  }

  close(): void {
    this.clientCa?.close();
    this.requestHeaderCa?.close();
    for (const certificate of [this.proxy, this.kubelet, this.etcd]) certificate.close();
  }
}
