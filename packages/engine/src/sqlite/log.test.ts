import { describeLog } from '../conformance/describe-log.ts'
import { makeSqliteEngine } from './under-test.ts'

describeLog(makeSqliteEngine)
