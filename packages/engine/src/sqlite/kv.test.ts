import { describeKv } from '../conformance/describe-kv.ts'
import { makeSqliteEngine } from './under-test.ts'

describeKv(makeSqliteEngine)
