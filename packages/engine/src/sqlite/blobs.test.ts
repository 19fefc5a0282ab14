import { describeBlobs } from '../conformance/describe-blobs.ts'
import { makeSqliteEngine } from './under-test.ts'

describeBlobs(makeSqliteEngine)
