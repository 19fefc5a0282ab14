/** Where this machine keeps its settings for packages; tests bring their own. */
export interface PackageSettings {
  /** The daemon's environment: `PIP_*`, `npm_config_*`, certificate and proxy variables. */
  readonly env: Readonly<Record<string, string | undefined>>
  /** `/etc/apt` */
  readonly aptDirectory: string
  /** `/etc/os-release` */
  readonly osReleasePath: string
  /** Configuration files of pip, the later one holds. */
  readonly pipFiles: readonly string[]
  /** The same of npm. */
  readonly npmFiles: readonly string[]
  /** What the machine trusts. */
  readonly certificatesPath: string
}
